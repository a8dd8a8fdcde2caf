//! Starts a child before it is known what it will have to do.
//!
//! What every such child needs (namespaces, say) takes the kernel a while, and so does finding out
//! what this one is for. With [`Ahead`] two processors do both at once: the child begins with what
//! is always the same, sleeps until its first orders are there, carries those out while the rest
//! is still being written, and sleeps again. With the rest it becomes another program, once it has
//! leave to. It dies with the thread that has started it.
//!
//! The child runs in our memory and with our very table of descriptors, so that it has whatever
//! we open for it later. Before it closes or replaces any, it parts with the table
//! ([`descriptors::part`](super::descriptors::part)). Our thread's local storage is the child's as
//! well, and we use it meanwhile: the child must not, so no `errno`, no allocation, no panic.

use std::mem::ManuallyDrop;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{PidfdFlags, Signal, getpid, pidfd_open};
use rustix::thread::futex;

use super::process::signal_at_parents_end;
use super::processors::{Aside, Before};
use super::spawn::{Launch, Sharing, Spawn};
use super::stack::Stack;
use super::subject::Subject;
use super::wait::Child;

/// What runs in the child, with the orders that will come.
///
/// As with [`Body`](super::spawn::Body), its result is the child's exit status.
pub type Errand<C, F, R> = fn(&Subject, Orders<'_, C, F, R>) -> u8;

/// How long a child that nothing is wanted of may take to go.
const PATIENCE: Timespec = Timespec {
    tv_sec: 1,
    tv_nsec: 0,
};

/// A child that waits for its orders.
///
/// Dropped before it has all of them, the child ends, and is reaped.
#[derive(Debug)]
#[must_use = "dropping it ends the child"]
pub struct Ahead<C: 'static, F: 'static, R: 'static> {
    kept: ManuallyDrop<Kept<C, F>>,
    post: NonNull<Post<C, F, R>>,
}

/// What stays where it is until the child is done with it.
#[derive(Debug)]
struct Kept<C, F> {
    child: Child,
    context: Option<Box<C>>,
    first: Option<Box<F>>,
    /// By this the child knows that we are still there.
    _own: OwnedFd,
    _stack: Stack,
}

// SAFETY: the pointer leads into a mapping that is owned by this value alone; what lies there is
// shared with the child by atomics only. What the child reads while we have it can be shared.
unsafe impl<C: Send + Sync, F: Send + Sync, R: Send> Send for Ahead<C, F, R> {}

/// The orders, as the child sees them.
#[derive(Debug)]
pub struct Orders<'a, C, F, R> {
    post: &'a Post<C, F, R>,
    /// Where the child may run, while it is kept from running elsewhere.
    kept: Option<Before>,
}

/// Lies on the child's stack, where both find it.
#[derive(Debug)]
struct Post<C, F, R> {
    context: Letter<C>,
    first: Letter<F>,
    rest: Letter<R>,
    leave: Letter<()>,
    /// The starter, by the number of a pidfd.
    starter: RawFd,
    /// [`HERE`], until the kernel writes a zero: then the child has left our memory.
    here: AtomicU32,
}

const HERE: u32 = 1;

impl<C, F, R> Post<C, F, R> {
    /// Whether the starter is still there, for the child.
    fn is_attended(&self) -> bool {
        const NOW: Timespec = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        // SAFETY: open in the table of descriptors that both share, as long as there is a starter
        // that could close it.
        let starter = unsafe { BorrowedFd::borrow_raw(self.starter) };
        let mut watched = [PollFd::from_borrowed_fd(starter, PollFlags::IN)];
        poll(&mut watched, Some(&NOW)) == Ok(0)
    }
}

#[derive(Debug)]
struct Letter<T> {
    text: AtomicPtr<T>,
    arrived: AtomicU32,
}

impl<T> Letter<T> {
    const fn new() -> Self {
        Self {
            text: AtomicPtr::new(ptr::null_mut()),
            arrived: AtomicU32::new(0),
        }
    }

    fn send(&self, text: *mut T) {
        self.text.store(text, Ordering::Relaxed);
        self.arrived.store(1, Ordering::Release);
        // Whoever does not sleep yet sees it anyway.
        let _woken = futex::wake(&self.arrived, futex::Flags::PRIVATE, 1);
    }

    /// Says that there will be none, if there was none.
    fn refuse(&self) {
        if self.arrived.load(Ordering::Relaxed) == 0 {
            self.send(ptr::null_mut());
        }
    }

    /// Null if there will be none.
    fn receive(&self) -> *mut T {
        sleep_while(&self.arrived, 0, futex::Flags::PRIVATE);
        self.text.load(Ordering::Relaxed)
    }
}

/// Sleeps as long as a word is this one.
fn sleep_while(word: &AtomicU32, value: u32, flags: futex::Flags) {
    while word.load(Ordering::Acquire) == value {
        // Another word by now, or a signal: both are looked at above.
        let _answer = futex::wait(word, flags, value, None);
    }
}

impl<C, F, R> Orders<'_, C, F, R> {
    /// Sleeps until it is there what the child can begin with. Whoever gave it goes on.
    ///
    /// `None`, here and below, if nothing is wanted of the child any more: it has to go, and to close
    /// what it has opened, since the table of descriptors is not its own.
    pub fn context(&self) -> Option<&C> {
        let text = self.post.context.receive();
        // SAFETY: the sender keeps the box, unchanged, until this process has left its memory.
        unsafe { text.as_ref() }
    }

    /// Sleeps until the first orders are there. Whoever gave them goes on.
    pub fn first(&self) -> Option<&F> {
        let text = self.post.first.receive();
        // SAFETY: the sender keeps the box, unchanged, until this process has left its memory.
        unsafe { text.as_ref() }
    }

    /// Sleeps until the rest is there. Whoever gave it does not look at it again before the child has
    /// left. It has leave to when that is granted.
    pub fn rest(&mut self) -> Option<(&mut R, Leave<'_>)> {
        let text = self.post.rest.receive();
        if let Some(before) = self.kept.take() {
            before.roam_again();
        }
        // SAFETY: the sender's own exclusive reference, which it does not use until this process
        // has left its memory; and it can be had once at a time, since `self` is borrowed.
        let rest = unsafe { text.as_mut() };
        rest.map(|rest| (rest, Leave(&self.post.leave)))
    }
}

/// A child's leave to become another program.
#[derive(Debug)]
pub struct Leave<'a>(&'a Letter<()>);

impl Leave<'_> {
    /// Sleeps until that is decided. If it is not granted the child has to go.
    pub fn is_granted(&self) -> bool {
        !self.0.receive().is_null()
    }
}

/// A child that has everything and still uses our memory. Dropped, it has no leave, and is waited for.
struct Parting<C: 'static, F: 'static, R: 'static>(ManuallyDrop<Ahead<C, F, R>>);

impl<C, F, R> Parting<C, F, R> {
    /// Lets it go, and waits until it has.
    fn grant(self) -> Kept<C, F> {
        let mut this = ManuallyDrop::new(self);
        let post = this.0.post();
        post.leave.send(NonNull::dangling().as_ptr());
        sleep_while(&post.here, HERE, futex::Flags::empty());
        // SAFETY: it is not used again, since neither is ever dropped. The kernel has said that the
        // child is done with our memory.
        unsafe { ManuallyDrop::take(&mut this.0.kept) }
    }
}

impl<C: 'static, F: 'static, R: 'static> Drop for Parting<C, F, R> {
    fn drop(&mut self) {
        let ahead = &self.0;
        let _sent = ahead.see_out();
        // Whatever became of it: what it was lent is somebody's again when this returns.
        sleep_while(&ahead.post().here, HERE, futex::Flags::empty());
        let _status = ahead.kept.child.wait();
        // SAFETY: it is not used again. The kernel has said that the child is done with our memory.
        unsafe { ManuallyDrop::drop(&mut self.0.kept) };
    }
}

/// The child's side of its birth.
struct Birth<C: 'static, F: 'static, R: 'static> {
    post: NonNull<Post<C, F, R>>,
    errand: Errand<C, F, R>,
    /// How the child is to run, if it was kept from that.
    kept: Option<Before>,
}

impl<C: Sync + 'static, F: Sync + 'static, R: Send + 'static> Ahead<C, F, R> {
    /// Starts a child as described by `spawn`, which begins at once.
    ///
    /// # Errors
    ///
    /// The kernel's answer; no child exists then. [`Errno::NOSYS`] where there is no `clone3`.
    pub fn start(spawn: &Spawn<'_>, errand: Errand<C, F, R>) -> Result<Self, Errno> {
        let stack = Stack::map()?;
        let own = pidfd_open(getpid(), PidfdFlags::empty())?;
        let post = Post {
            starter: own.as_raw_fd(),
            context: Letter::new(),
            first: Letter::new(),
            rest: Letter::new(),
            leave: Letter::new(),
            here: AtomicU32::new(HERE),
        };
        let (post, below) = stack.lay(stack.top(), post)?;
        let post = NonNull::new(post).ok_or(Errno::FAULT)?;
        // The kernel would put it behind us, where it waits until we sleep, or on another processor, which has to
        // wake up first; and whenever we wake it, behind us again. So it is born here, stays here as long
        // as we work, and we make room: it is the one everybody waits for.
        let aside = Aside::stay();
        let birth = Birth {
            post,
            errand,
            kept: aside.as_ref().map(Aside::before),
        };
        let (birth, below) = stack.lay(below, birth)?;
        // SAFETY: a live value of that type was laid there just now, and nobody else knows of it.
        let launch = Launch::new(unsafe { &mut *birth }, begin);
        let (launch, below) = stack.lay(below, launch)?;
        // SAFETY: laid there just now. From here on both sides only share it.
        let here = unsafe { &post.as_ref().here };
        let child = spawn.blocked(Sharing::until_left(here), launch, Some((&stack, below)))?;
        if let Some(aside) = aside {
            aside.step();
        }
        Ok(Self {
            kept: ManuallyDrop::new(Kept {
                child,
                context: None,
                first: None,
                _own: own,
                _stack: stack,
            }),
            post,
        })
    }

    /// What the child can begin with, if it has that.
    pub fn context(&self) -> Option<&C> {
        self.kept.context.as_deref()
    }

    /// Gives it what it can begin with, and goes on. Only the first time counts.
    pub fn begin(&mut self, context: Box<C>) {
        if self.kept.context.is_none() {
            let text = ptr::from_ref(&**self.kept.context.insert(context));
            self.post().context.send(text.cast_mut());
        }
    }

    /// Gives the first orders, and goes on. Only the first time counts.
    pub fn order(&mut self, first: Box<F>) {
        if self.kept.first.is_none() {
            let text = ptr::from_ref(&**self.kept.first.insert(first));
            self.post().first.send(text.cast_mut());
        }
    }

    /// Gives the rest, does something else while the child carries it out, and sleeps until the child has
    /// become another program, or has ended. The first orders come back with it.
    ///
    /// # Errors
    ///
    /// That of what was done meanwhile: the child has then ended without becoming anything.
    pub fn finish<T, E>(
        self,
        rest: &mut R,
        meanwhile: impl FnOnce() -> Result<T, E>,
    ) -> Result<(Child, Option<Box<F>>, T), E> {
        let parting = Parting(ManuallyDrop::new(self));
        parting.0.post().rest.send(rest);
        let done = meanwhile()?;
        let Kept { child, first, .. } = parting.grant();
        Ok((child, first, done))
    }
}

impl<C, F, R> Ahead<C, F, R> {
    /// Has nothing for it to do any more. It goes while we go on; dropping this waits for it.
    pub fn dismiss(&self) {
        let post = self.post();
        post.context.refuse();
        post.first.refuse();
        post.rest.refuse();
        post.leave.refuse();
    }

    /// Has it go, and sees to it that it does.
    fn see_out(&self) -> Result<(), Errno> {
        self.dismiss();
        let child = &self.kept.child;
        // It goes by itself, with everything it has opened, unless something holds it up: a file
        // system that does not answer, say. What such a child has open stays open here.
        let mut watched = [PollFd::new(child, PollFlags::IN)];
        while poll(&mut watched, Some(&PATIENCE)) == Err(Errno::INTR) {}
        child.signal(Signal::KILL)
    }

    fn post(&self) -> &Post<C, F, R> {
        // SAFETY: it lies on the stack, which is ours until the end, and is never written but by
        // atomics.
        unsafe { self.post.as_ref() }
    }
}

impl<C: 'static, F: 'static, R: 'static> Drop for Ahead<C, F, R> {
    fn drop(&mut self) {
        let ended = self.see_out().and_then(|()| self.kept.child.wait());
        // Unless it is known to be gone, all of it is left to the child for ever.
        if ended.is_ok() {
            // SAFETY: it is not used again.
            unsafe { ManuallyDrop::drop(&mut self.kept) };
        }
    }
}

/// The status of a child that has lost its starter.
const NOT_BEGUN: u8 = 125;

/// The child's first function.
fn begin<C, F, R>(subject: &Subject, birth: &mut Birth<C, F, R>) -> u8 {
    // SAFETY: it lies on this very stack, and is never written but by atomics.
    let post = unsafe { birth.post.as_ref() };
    // From here on it dies with its starter, which could have gone before: then nobody would ever
    // wake it.
    if !signal_at_parents_end(subject, Signal::KILL).is_ok_and(|()| post.is_attended()) {
        return NOT_BEGUN;
    }
    if let Some(before) = birth.kept {
        before.push_again();
    }
    let kept = birth.kept;
    (birth.errand)(subject, Orders { post, kept })
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use rustix::io::{read, write};
    use rustix::pipe::{PipeFlags, pipe_with};
    use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

    use super::super::descriptors;
    use super::super::namespaces::Namespaces;
    use super::super::processors::is_ordinary;
    use super::super::spawn::Memory;
    use super::super::wait::Ended;
    use super::*;

    fn shared() -> Spawn<'static> {
        Spawn::new(Memory::Shared).namespaces(Namespaces::empty())
    }

    /// Adds up what it is given, and says so.
    fn adds(_subject: &Subject, mut orders: Orders<'_, u8, u8, u8>) -> u8 {
        let all = (orders.context().copied(), orders.first().copied());
        let ((Some(begun), Some(first)), Some((rest, leave))) = (all, orders.rest()) else {
            return UNWANTED;
        };
        *rest += first;
        if leave.is_granted() {
            *rest + begun
        } else {
            UNWANTED
        }
    }

    const UNWANTED: u8 = 99;
    const LONG: Timespec = Timespec {
        tv_sec: 20,
        tv_nsec: 0,
    };

    #[test]
    fn orders_reach_the_child_in_turn() {
        let mut ahead = Ahead::start(&shared(), adds).unwrap();
        ahead.begin(Box::new(1));
        assert_eq!(ahead.context(), Some(&1));
        ahead.order(Box::new(2));
        let mut rest = 4;
        let (child, first) = finished(ahead, &mut rest);
        assert_eq!(first.as_deref(), Some(&2));
        assert_eq!(rest, 6, "what the child wrote is found here");
        assert_eq!(child.wait(), Ok(Ended::Exited(7)));
    }

    /// With nothing else to do meanwhile.
    fn finished<C: Sync, F: Sync, R: Send>(
        ahead: Ahead<C, F, R>,
        rest: &mut R,
    ) -> (Child, Option<Box<F>>) {
        let done = ahead.finish(rest, || Ok::<_, Errno>(()));
        let (child, first, ()) = done.unwrap();
        (child, first)
    }

    #[test]
    fn a_child_has_no_leave_before_everything_is_done() {
        let begun = || {
            let mut ahead = Ahead::start(&shared(), adds).unwrap();
            ahead.begin(Box::new(1));
            ahead.order(Box::new(2));
            let child = ahead.kept.child.as_fd().try_clone_to_owned().unwrap();
            (ahead, child)
        };
        let is_there = |child: &OwnedFd| {
            let soon = Timespec {
                tv_sec: 0,
                tv_nsec: 50_000_000,
            };
            let mut watched = [PollFd::new(child, PollFlags::IN)];
            poll(&mut watched, Some(&soon)) == Ok(0)
        };
        let (ahead, child) = begun();
        let waits = ahead.finish(&mut 4, || Ok::<_, Errno>(is_there(&child)));
        let (child, _, waited) = waits.unwrap();
        assert!(waited);
        assert_eq!(child.wait(), Ok(Ended::Exited(7)));

        let (ahead, child) = begun();
        let failed = ahead.finish(&mut 4, || Err::<(), _>(Errno::IO));
        assert_eq!(failed.err(), Some(Errno::IO));
        assert!(!is_there(&child), "ended");

        // Nothing of the starter's is used any more when its frames go.
        let (ahead, child) = begun();
        let panicking = std::panic::AssertUnwindSafe(|| {
            ahead.finish(&mut 4, || -> Result<(), Errno> { panic!("on purpose") })
        });
        assert!(std::panic::catch_unwind(panicking).is_err());
        assert!(!is_there(&child), "ended");
        let reaped = rustix::process::pidfd_send_signal(&child, Signal::KILL);
        assert_eq!(reaped, Err(Errno::SRCH));
    }

    #[test]
    fn a_child_that_is_given_nothing_goes_with_its_starter() {
        for ordered in [false, true] {
            let (ours, theirs) = pipe_with(PipeFlags::CLOEXEC).unwrap();
            let mut ahead = Ahead::start(&shared(), adds).unwrap();
            let pid = ahead.kept.child.pid();
            if ordered {
                ahead.begin(Box::new(1));
                ahead.order(Box::new(2));
            }
            drop(ahead);
            let gone = rustix::process::test_kill_process(pid);
            assert_eq!(gone, Err(Errno::SRCH), "killed and reaped");
            // It had our table of descriptors, not a copy of its own.
            drop(theirs);
            assert_eq!(read(&ours, &mut [0; 1]), Ok(0));
        }
    }

    /// Writes where it is told, parts with the table of descriptors, and closes all of its own.
    fn parts(subject: &Subject, mut orders: Orders<'_, (), (), RawFd>) -> u8 {
        orders.first();
        let Some((&mut number, _)) = orders.rest() else {
            return 1;
        };
        let parted = descriptors::part(subject);
        let written = write(descriptors::own(subject, number), b"x");
        let closed = descriptors::close_from(subject, 0);
        u8::from(parted.is_err() || written != Ok(1) || closed.is_err())
    }

    #[test]
    fn descriptors_opened_after_the_birth_are_the_childs_too() {
        let mut ahead = Ahead::start(&shared(), parts).unwrap();
        let (ours, theirs) = pipe_with(PipeFlags::CLOEXEC).unwrap();
        ahead.order(Box::new(()));
        let (child, _) = finished(ahead, &mut theirs.as_raw_fd());
        assert_eq!(child.wait(), Ok(Ended::Exited(0)));
        let mut byte = [0; 1];
        assert_eq!(read(&ours, &mut byte), Ok(1), "still open here");
        assert_eq!(&byte, b"x");
        drop(theirs);
        assert_eq!(read(&ours, &mut byte), Ok(0), "and closed there");
    }

    /// Says where it may run, and whether it waits for its turn as others do.
    fn looks_around(_subject: &Subject, mut orders: Orders<'_, (), (), (CpuSet, bool)>) -> u8 {
        let Some((seen, _)) = orders.rest() else {
            return 1;
        };
        match sched_getaffinity(None) {
            Ok(processors) => *seen = (processors, is_ordinary()),
            Err(_) => return 1,
        }
        0
    }

    #[test]
    fn the_child_runs_where_and_as_its_starter_does() {
        let whole = sched_getaffinity(None).unwrap();
        let mut one = CpuSet::new();
        one.set((0..CpuSet::MAX_CPU).find(|cpu| whole.is_set(*cpu)).unwrap());
        for processors in [whole, one] {
            // Of this thread only.
            sched_setaffinity(None, &processors).unwrap();
            let ahead = Ahead::start(&shared(), looks_around).unwrap();
            let ours = sched_getaffinity(None).unwrap();
            assert_eq!(ours, processors, "ours are as before");
            assert!(is_ordinary());
            let mut seen = (CpuSet::new(), false);
            let (child, _) = finished(ahead, &mut seen);
            assert_eq!(child.wait(), Ok(Ended::Exited(0)));
            assert_eq!(seen, (processors, true));
        }
    }

    /// Has a copy of a descriptor open while it waits.
    fn holds(_subject: &Subject, mut orders: Orders<'_, u32, (), ()>) -> u8 {
        let copy = orders.context().map(|number| descriptors::copy_of(*number));
        let wanted = orders.first().is_some() || orders.rest().is_some();
        u8::from(copy.is_none_or(|copy| copy.is_err()) || wanted)
    }

    #[test]
    fn a_child_that_nobody_wants_leaves_nothing_open() {
        for _ in 0..50 {
            let (ours, theirs) = pipe_with(PipeFlags::CLOEXEC).unwrap();
            let mut ahead = Ahead::start(&shared(), holds).unwrap();
            ahead.begin(Box::new(theirs.as_raw_fd().unsigned_abs()));
            drop(ahead);
            drop(theirs);
            // Nobody holds the other end in a table that was ours as well. Children of other tests
            // have copies of it for a while.
            let mut watched = [PollFd::new(&ours, PollFlags::IN)];
            assert_eq!(poll(&mut watched, Some(&LONG)), Ok(1), "left open");
        }
    }

    #[test]
    fn many_are_born_and_let_go() {
        // Letters and deaths that cross each other.
        for round in 0_u8..200 {
            let mut ahead = Ahead::start(&shared(), adds).unwrap();
            ahead.begin(Box::new(0));
            if round % 3 > 0 {
                ahead.order(Box::new(round / 2));
            }
            if round % 3 > 1 {
                let (child, _) = finished(ahead, &mut 1);
                assert_eq!(child.wait(), Ok(Ended::Exited(round / 2 + 1)));
            }
        }
    }
}
