//! A machine that means harm, and the loop against it.
//!
//! Between any two things that the loop does, the simulated processes of the session may do any
//! number of things: fork, leave their group, lose their parents, exit, become zombies, be collected;
//! numbers are given out again at once; and processes of others come and go in between. The
//! adversary's moves are finite, as is the time that any process has between a look and a signal.

use proptest::prelude::*;

use super::*;

#[derive(Clone, Debug, Eq, PartialEq)]
struct Simulated {
    pid: i32,
    born: u64,
    parent: i32,
    group: i32,
    session: bool,
    life: Life,
}

#[derive(Clone, Copy, Debug)]
enum Move {
    /// A process of the session starts another; the number is the lowest that is free.
    Fork(usize),
    /// A process of the session starts another and exits; the child becomes init's.
    DoubleFork(usize),
    /// The same, and the first one is collected at once, so that its number is free.
    HandOver(usize),
    /// A process of the session leaves its group.
    Leave(usize),
    /// A process of the session exits; its parent may never collect it.
    Exit(usize),
    /// Zombies are collected, and their numbers are free again.
    Reap,
    /// Somebody else starts a process, perhaps with a number that was just freed.
    Stranger,
    /// Somebody else's process ends.
    StrangerExits(usize),
    /// The loop has its turn.
    Rest,
}

struct Machine {
    processes: Vec<Simulated>,
    moves: Vec<Move>,
    killed_strangers: Vec<i32>,
    fail_at_list: Option<u32>,
    lists: u32,
    births: u64,
}

const GROUP: i32 = 100;

fn identity(process: &Simulated) -> Identity {
    Identity {
        pid: process.pid,
        born: process.born,
    }
}

impl Machine {
    fn new(moves: Vec<Move>, strangers: usize) -> Self {
        let mut machine = Self {
            processes: Vec::new(),
            moves,
            killed_strangers: Vec::new(),
            fail_at_list: None,
            lists: 0,
            births: 0,
        };
        machine.start(1, 1, false);
        for _ in 0..strangers {
            machine.start(1, 7, false);
        }
        machine.start(1, GROUP, true);
        machine
    }

    /// Gives out the lowest number that nobody has: as adverse as a machine can be.
    fn start(&mut self, parent: i32, group: i32, session: bool) {
        let taken = |pid: i32| self.processes.iter().any(|process| process.pid == pid);
        let pid = (1..=i32::MAX).find(|pid| !taken(*pid)).unwrap();
        self.births += 1;
        self.processes.push(Simulated {
            pid,
            born: self.births,
            parent,
            group,
            session,
            life: Life::Running,
        });
    }

    fn pick(&self, which: usize, session: bool) -> Option<usize> {
        let alive: Vec<usize> = (0..self.processes.len())
            .filter(|index| {
                let process = &self.processes[*index];
                process.session == session && process.life == Life::Running && process.pid != 1
            })
            .collect();
        alive.get(which.checked_rem(alive.len())?).copied()
    }

    fn die(&mut self, index: usize) {
        let pid = self.processes[index].pid;
        self.processes[index].life = Life::Zombie;
        for process in &mut self.processes {
            if process.parent == pid {
                process.parent = 1;
            }
        }
    }

    /// The others have their turn, until they rest.
    fn turn(&mut self) {
        while let Some(next) = self.moves.pop() {
            if matches!(next, Move::Rest) {
                return;
            }
            self.make(next);
        }
    }

    fn make(&mut self, next: Move) {
        match next {
            Move::Rest => {}
            Move::Fork(which) => {
                if let Some(index) = self.pick(which, true) {
                    let (pid, group) = (self.processes[index].pid, self.processes[index].group);
                    self.start(pid, group, true);
                }
            }
            Move::DoubleFork(which) => {
                if let Some(index) = self.pick(which, true) {
                    let pid = self.processes[index].pid;
                    self.start(pid, pid, true);
                    self.die(index);
                }
            }
            Move::HandOver(which) => {
                if let Some(index) = self.pick(which, true) {
                    let pid = self.processes[index].pid;
                    self.start(pid, pid, true);
                    self.die(index);
                    self.processes.remove(index);
                }
            }
            Move::Leave(which) => {
                if let Some(index) = self.pick(which, true) {
                    self.processes[index].group = self.processes[index].pid;
                }
            }
            Move::Exit(which) => {
                if let Some(index) = self.pick(which, true) {
                    self.die(index);
                }
            }
            Move::Reap => self
                .processes
                .retain(|process| process.life == Life::Running),
            Move::Stranger => self.start(1, 7, false),
            Move::StrangerExits(which) => {
                if let Some(index) = self.pick(which, false) {
                    self.processes.remove(index);
                }
            }
        }
    }

    fn survivors(&self) -> usize {
        let alive = |process: &&Simulated| process.session && process.life == Life::Running;
        self.processes.iter().filter(alive).count()
    }
}

impl ProcessTable for Machine {
    type Error = &'static str;

    fn end_group(&mut self) {
        for index in 0..self.processes.len() {
            if self.processes[index].group == GROUP {
                self.die(index);
            }
        }
        self.turn();
    }

    fn list(&mut self) -> Result<Vec<Listed>, Self::Error> {
        self.turn();
        self.lists += 1;
        if self.fail_at_list == Some(self.lists) {
            return Err("no");
        }
        let listed = self.processes.iter().map(|process| Listed {
            process: identity(process),
            life: process.life,
        });
        Ok(listed.collect())
    }

    fn recognise(&mut self, asked: Identity) -> Standing {
        self.turn();
        // The kernel answers for zombies too; the loop must not have asked.
        let found = self
            .processes
            .iter()
            .find(|process| identity(process) == asked);
        match found {
            None => Standing::Gone,
            Some(process) if process.session => Standing::Here,
            Some(_) => Standing::Elsewhere,
        }
    }

    fn end(&mut self, asked: Identity) {
        // A signal goes by the number alone, to whoever has it by then.
        if let Some(index) = self
            .processes
            .iter()
            .position(|process| process.pid == asked.pid)
        {
            if !self.processes[index].session {
                self.killed_strangers.push(asked.pid);
            }
            self.die(index);
        }
        self.turn();
    }

    fn pause(&mut self, _passes: u32) {
        self.turn();
    }
}

fn moves(count: std::ops::Range<usize>) -> impl Strategy<Value = Vec<Move>> {
    let which = || 0..64_usize;
    let one = prop_oneof![
        4 => which().prop_map(Move::Fork),
        3 => which().prop_map(Move::DoubleFork),
        4 => which().prop_map(Move::HandOver),
        2 => which().prop_map(Move::Leave),
        1 => which().prop_map(Move::Exit),
        2 => Just(Move::Reap),
        2 => Just(Move::Stranger),
        1 => which().prop_map(Move::StrangerExits),
        6 => Just(Move::Rest),
    ];
    proptest::collection::vec(one, count)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn it_ends_and_takes_exactly_the_session_along(
        before in moves(0..40), moves in moves(0..200), strangers in 0..6_usize,
    ) {
        let most = (before.len() + moves.len()) as u64;
        let mut machine = Machine::new(Vec::new(), strangers);
        // What the session did with its life: enough to leave its group.
        for step in before {
            machine.make(step);
        }
        machine.moves = moves;
        let done = end_session(&mut machine).unwrap();
        prop_assert_eq!(machine.survivors(), 0);
        prop_assert_eq!(&machine.killed_strangers, &Vec::<i32>::new());
        // Nobody is born without a move, and nobody is ended twice; a pass without a conclusion
        // ended somebody, or somebody vanished in it.
        prop_assert!(done.ended <= most + 1);
        prop_assert!(u64::from(done.passes) <= 2 * most + 2);
    }
}

#[test]
fn a_zombie_that_nobody_collects_does_not_keep_it_waiting() {
    let mut machine = Machine::new(vec![Move::Exit(0)], 2);
    let done = end_session(&mut machine).unwrap();
    assert_eq!((machine.survivors(), done.passes), (0, 1));
    assert!(
        machine
            .processes
            .iter()
            .any(|process| process.life == Life::Zombie)
    );
}

#[test]
fn a_machine_that_lists_nothing_is_not_taken_for_an_empty_one() {
    let mut machine = Machine::new(Vec::new(), 0);
    machine.processes[1].group = 5;
    machine.fail_at_list = Some(2);
    assert_eq!(end_session(&mut machine), Err(CleanupError::List("no")));
}

/// Processes that do not die, whatever is done to them.
struct Immortal;

impl ProcessTable for Immortal {
    type Error = std::convert::Infallible;

    fn end_group(&mut self) {}

    fn list(&mut self) -> Result<Vec<Listed>, Self::Error> {
        let process = Identity { pid: 9, born: 1 };
        let life = Life::Running;
        Ok(vec![Listed { process, life }])
    }

    fn recognise(&mut self, _process: Identity) -> Standing {
        Standing::Here
    }

    fn end(&mut self, _process: Identity) {}

    fn pause(&mut self, _passes: u32) {}
}

#[test]
fn what_does_not_die_is_said_and_not_waited_for_for_ever() {
    assert_eq!(
        end_session(&mut Immortal),
        Err(CleanupError::Unkillable { left: 1 })
    );
}

/// The machine with one process of the session, which is not in the group that is ended first.
fn escaped(moves: &[Move]) -> Machine {
    let mut machine = Machine::new(Vec::new(), 0);
    machine.processes[1].group = 5;
    // The last one is made first. `end_group` has the first turn, `list` the second.
    machine.moves = moves.iter().rev().copied().collect();
    machine
}

/// A scan that stops at the first pass without a match would stop here: the one that was listed is
/// gone when it is asked about, and the one that it started was not listed.
#[test]
fn a_process_that_hands_over_between_list_and_question_is_still_ended() {
    let rest = Move::Rest;
    let mut machine = escaped(&[rest, rest, rest, Move::HandOver(0), rest]);
    let done = end_session(&mut machine).unwrap();
    assert_eq!((machine.survivors(), done.ended), (0, 1), "{done:?}");
}

/// The same, and somebody else gets the number in between: nobody is ended for having it.
#[test]
fn a_number_that_changed_hands_is_not_taken_for_the_process() {
    let rest = Move::Rest;
    let moves = [rest, rest, rest, Move::HandOver(0), Move::Stranger, rest];
    let mut machine = escaped(&moves);
    let done = end_session(&mut machine).unwrap();
    assert_eq!((machine.survivors(), done.ended), (0, 1), "{done:?}");
    assert_eq!(machine.killed_strangers, Vec::<i32>::new());
}

proptest! {
    /// Whoever says that nobody is left is right, whatever happens while he asks; and ends nobody.
    #[test]
    fn nobody_is_said_to_be_left_only_when_nobody_is(
        before in moves(0..40), moves in moves(0..100), strangers in 0..6_usize,
    ) {
        let mut machine = Machine::new(Vec::new(), strangers);
        for step in before {
            machine.make(step);
        }
        machine.moves = moves;
        if !anybody_left(&mut machine).unwrap() {
            prop_assert_eq!(machine.survivors(), 0);
        }
        prop_assert_eq!(&machine.killed_strangers, &Vec::<i32>::new());
    }
}

#[test]
fn who_hands_over_while_everybody_is_asked_about_is_still_found() {
    let rest = Move::Rest;
    let mut machine = escaped(&[rest, Move::HandOver(0), rest, rest]);
    assert_eq!(anybody_left(&mut machine), Ok(true));
    let members = members(&mut machine).unwrap();
    let own = machine.processes.iter().filter(|process| process.session);
    assert_eq!(members, own.map(identity).collect::<Vec<_>>());
    machine.make(Move::Exit(0));
    assert_eq!(anybody_left(&mut machine), Ok(false), "a zombie is nobody");
    machine.fail_at_list = Some(machine.lists + 1);
    assert_eq!(anybody_left(&mut machine), Err(CleanupError::List("no")));
}
