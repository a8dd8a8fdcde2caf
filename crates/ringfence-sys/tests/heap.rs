//! The heap of the program, as the heap of this one.

use ringfence_sys::heap::Heap;

#[global_allocator]
static HEAP: Heap = Heap::new();

#[cfg(test)]
mod tests {
    #[repr(align(64))]
    struct Wide(u8);

    /// Has pieces of many sizes and alignments, lets them grow and shrink, and looks whether each stays
    /// what it is.
    fn use_it(mark: u8) {
        let mut kept: Vec<Vec<u8>> = Vec::new();
        for size in 1..2000 {
            let zeroed = vec![0_u8; size];
            let mut piece = vec![mark; size];
            piece.reserve_exact(2 * size);
            piece.extend(vec![mark; size]);
            kept.push(piece);
            assert!(zeroed.iter().all(|byte| *byte == 0));
            if size % 3 == 0 {
                kept.swap_remove(size / 3).shrink_to_fit();
            }
            let wide = Box::new(Wide(mark));
            assert_eq!(std::ptr::from_ref(&*wide).addr() % 64, 0);
            assert_eq!(wide.0, mark);
        }
        assert!(kept.iter().flatten().all(|byte| *byte == mark));
    }

    #[test]
    fn pieces_belong_to_one_thread_each() {
        std::thread::scope(|scope| {
            for mark in 1..5 {
                scope.spawn(move || (0..5).for_each(|_| use_it(mark)));
            }
        });
        assert_eq!(format!("{:?}", super::HEAP), "Heap");
    }
}
