//! `memcpy` and `memmove` for a static program.
//!
//! Nearly everything that is moved is short: a path, a rule, a rule's origin. musl copies all of it with
//! a string instruction that takes longer to begin than the copying takes, and a start copies
//! some ten thousand times. What is short is read whole into registers before any of it is written,
//! so that it may overlap, and one function is both. It is assembly since the compiler would make a call of
//! `memcpy` of a loop that copies.

use std::arch::global_asm;

/// Writes the function down under these names. As the ABI has it: to where in `rdi`, from where in
/// `rsi`, how many bytes in `rdx`, and to where once more in `rax`.
macro_rules! copying {
    ($($name:literal),+) => {
        global_asm!(
            ".pushsection .text.memcpy, \"ax\", @progbits",
            ".p2align 4",
            $(
                concat!(".globl ", $name),
                concat!(".type ", $name, ", @function"),
                concat!($name, ":"),
            )+
            ".cfi_startproc",
            "mov rax, rdi",
            "cmp rdx, 16",
            "jb 40f",
            "cmp rdx, 32",
            "ja 20f",
            // 16 to 32: both ends, which meet or overlap. So do those below.
            "movups xmm0, [rsi]",
            "movups xmm1, [rsi + rdx - 16]",
            "movups [rdi], xmm0",
            "movups [rdi + rdx - 16], xmm1",
            "ret",
            "20: cmp rdx, 64",
            "ja 21f",
            // 33 to 64.
            "movups xmm0, [rsi]",
            "movups xmm1, [rsi + 16]",
            "movups xmm2, [rsi + rdx - 32]",
            "movups xmm3, [rsi + rdx - 16]",
            "movups [rdi], xmm0",
            "movups [rdi + 16], xmm1",
            "movups [rdi + rdx - 32], xmm2",
            "movups [rdi + rdx - 16], xmm3",
            "ret",
            "21: cmp rdx, 128",
            "ja 30f",
            // 65 to 128.
            "22: movups xmm0, [rsi]",
            "movups xmm1, [rsi + 16]",
            "movups xmm2, [rsi + 32]",
            "movups xmm3, [rsi + 48]",
            "movups xmm4, [rsi + rdx - 64]",
            "movups xmm5, [rsi + rdx - 48]",
            "movups xmm6, [rsi + rdx - 32]",
            "movups xmm7, [rsi + rdx - 16]",
            "movups [rdi], xmm0",
            "movups [rdi + 16], xmm1",
            "movups [rdi + 32], xmm2",
            "movups [rdi + 48], xmm3",
            "movups [rdi + rdx - 64], xmm4",
            "movups [rdi + rdx - 48], xmm5",
            "movups [rdi + rdx - 32], xmm6",
            "movups [rdi + rdx - 16], xmm7",
            "ret",
            // More. From the front, unless that would write what was not read yet.
            "30: mov rcx, rdi",
            "sub rcx, rsi",
            "cmp rcx, rdx",
            "jb 31f",
            "mov rcx, rdx",
            "rep movsb",
            "ret",
            // From the end, until 113 to 128 are left.
            "31: movups xmm0, [rsi + rdx - 16]",
            "movups [rdi + rdx - 16], xmm0",
            "sub rdx, 16",
            "cmp rdx, 128",
            "ja 31b",
            "jmp 22b",
            // Less than 16.
            "40: cmp edx, 8",
            "jb 41f",
            "mov rcx, [rsi]",
            "mov r8, [rsi + rdx - 8]",
            "mov [rdi], rcx",
            "mov [rdi + rdx - 8], r8",
            "ret",
            "41: cmp edx, 4",
            "jb 42f",
            "mov ecx, [rsi]",
            "mov r8d, [rsi + rdx - 4]",
            "mov [rdi], ecx",
            "mov [rdi + rdx - 4], r8d",
            "ret",
            "42: test edx, edx",
            "jz 43f",
            // 1 to 3: the first, the last, and the one in the middle.
            "mov r9d, edx",
            "shr r9d, 1",
            "movzx ecx, byte ptr [rsi]",
            "movzx r8d, byte ptr [rsi + r9]",
            "movzx r10d, byte ptr [rsi + rdx - 1]",
            "mov [rdi], cl",
            "mov [rdi + r9], r8b",
            "mov [rdi + rdx - 1], r10b",
            "43: ret",
            ".cfi_endproc",
            ".popsection",
        );
    };
}

#[cfg(all(feature = "program", target_env = "musl"))]
copying!("memcpy", "memmove");
#[cfg(not(all(feature = "program", target_env = "musl")))]
copying!("ringfence_copy_of_memory");

#[cfg(test)]
mod tests {
    unsafe extern "C" {
        #[cfg_attr(all(feature = "program", target_env = "musl"), link_name = "memmove")]
        fn ringfence_copy_of_memory(to: *mut u8, from: *const u8, size: usize) -> *mut u8;
    }

    /// The same within one array.
    fn copy(bytes: &mut [u8], from: usize, to: usize, size: usize) {
        let from = bytes[from..from + size].as_ptr();
        let to = bytes[to..to + size].as_mut_ptr();
        // SAFETY: both have that many bytes, as was just looked at.
        let answer = unsafe { ringfence_copy_of_memory(to, from, size) };
        assert_eq!(answer, to);
    }

    #[test]
    fn every_size_is_copied_and_nothing_else() {
        const FAR: usize = 500;
        let numbered: Vec<u8> = (0..=250).cycle().take(1200).collect();
        for size in 0..=400 {
            // Apart, in either direction, and on top of each other by any number of bytes.
            let near = (0..40).flat_map(|near| [(near, 20), (20, near)]);
            let places = [(0, FAR), (FAR, 3), (7, FAR + 5)].into_iter().chain(near);
            for (from, to) in places {
                let (mut copied, mut expected) = (numbered.clone(), numbered.clone());
                copy(&mut copied, from, to, size);
                expected.copy_within(from..from + size, to);
                assert!(copied == expected, "{size} from {from} to {to}");
            }
        }
    }
}
