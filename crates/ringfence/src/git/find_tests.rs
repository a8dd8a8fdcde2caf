use super::walking::WORTH_A_THREAD;
use super::*;
use std::os::unix::fs::symlink;

struct World {
    _guard: tempfile::TempDir,
    root: AbsPath,
}

impl World {
    fn new() -> Self {
        let guard = tempfile::tempdir().unwrap();
        let path = std::fs::canonicalize(guard.path()).unwrap();
        Self {
            _guard: guard,
            root: AbsPath::parse(path).unwrap(),
        }
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.root.below(path);
        std::fs::create_dir_all(path.parent().unwrap().as_path()).unwrap();
        std::fs::write(path.as_path(), text).unwrap();
    }

    fn git_dir(&self, path: &str) -> AbsPath {
        self.write(&format!("{path}/HEAD"), "ref: refs/heads/main\n");
        for part in ["objects", "refs"] {
            std::fs::create_dir_all(self.root.below(path).below(part).as_path()).unwrap();
        }
        self.root.below(path)
    }

    fn find(&self, project: &str) -> Vec<Repository> {
        let search = Search::new(self.root.below(project));
        find(&search, Reach::Inside, &Lookout::new()).unwrap()
    }

    /// The one repository that is not the temporary directory's own.
    fn own(&self, project: &str) -> Repository {
        let found = self.find(project).into_iter();
        let mut own = found.filter(|found| found.position == Position::Own);
        own.next().unwrap()
    }

    /// A linked working tree `p` of the repository `main`, both knowing each other.
    fn worktree(&self) {
        self.git_dir("main/.git");
        self.write("main/.git/worktrees/w/commondir", "../..\n");
        let back = self.root.below("p/.git");
        let registered = format!("{}\n", back.as_path().display());
        self.write("main/.git/worktrees/w/gitdir", &registered);
        self.write("p/.git", "gitdir: ../main/.git/worktrees/w\n");
    }
}

fn paths(repository: &Repository) -> Vec<&AbsPath> {
    let git_dirs = repository.git_dirs.iter();
    git_dirs.map(|directory| &directory.path).collect()
}

#[test]
fn a_registered_working_tree_is_followed() {
    let world = World::new();
    world.worktree();
    let main = world.root.below("main/.git");
    let own = world.own("p");
    assert_eq!(own.shape, Shape::Pointer);
    assert_eq!(paths(&own), [&main, &main.below("worktrees/w")]);
}

/// What is wrong, and how it comes about.
type Forgery = (&'static str, fn(&World));

#[test]
fn a_forged_pointer_leads_nowhere() {
    let forgeries: [Forgery; 8] = [
        ("registered elsewhere", |world| {
            world.write("main/.git/worktrees/w/gitdir", "/elsewhere/.git\n");
        }),
        ("not registered", |world| {
            std::fs::remove_file(world.root.below("main/.git/worktrees/w/gitdir").as_path())
                .unwrap();
        }),
        ("another common directory", |world| {
            world.git_dir("victim/.git");
            world.write(
                "main/.git/worktrees/w/commondir",
                "../../../../victim/.git\n",
            );
        }),
        ("not in worktrees", |world| {
            world.git_dir("victim/.git");
            world.write("victim/.git/x/y/commondir", "../..\n");
            world.write("victim/.git/x/y/gitdir", "../../../../p/.git\n");
            world.write("p/.git", "gitdir: ../victim/.git/x/y\n");
        }),
        ("a repository that knows nothing of it", |world| {
            world.write("p/.git", "gitdir: ../main/.git\n");
        }),
        ("something that is no repository", |world| {
            world.write("secrets/key", "");
            world.write("p/.git", "gitdir: ../secrets\n");
        }),
        ("two lines", |world| {
            world.write("p/.git", "gitdir: ../main/.git/worktrees/w\n#\n");
        }),
        ("registered through a link of the project's", |world| {
            world.write("p/real", "gitdir: ../main/.git/worktrees/w\n");
            std::fs::remove_file(world.root.below("p/.git").as_path()).unwrap();
            symlink("real", world.root.below("p/.git").as_path()).unwrap();
        }),
    ];
    for (name, forge) in forgeries {
        let world = World::new();
        world.worktree();
        forge(&world);
        let outside = world.find("p").into_iter().flat_map(|found| found.git_dirs);
        let outside: Vec<GitDir> = outside
            .filter(|directory| world.root.covers(&directory.path))
            .collect();
        assert_eq!(outside, [], "{name}");
    }
}

#[test]
fn a_submodule_is_followed_if_its_directory_names_it() {
    let world = World::new();
    world.git_dir("top/.git");
    let module = world.git_dir("top/.git/modules/lib/sub");
    world.write("top/sub/.git", "gitdir: ../.git/modules/lib/sub\n");
    let config = "[core]\n\tworktree = ../../../../sub\n";
    world.write("top/.git/modules/lib/sub/config", config);

    let own = world.own("top/sub");
    assert_eq!(paths(&own), [&module]);
    let top = world.own("top");
    assert_eq!(paths(&top), [&world.root.below("top/.git"), &module]);

    world.write(
        "top/.git/modules/lib/sub/config",
        "[core]\n\tworktree = /x\n",
    );
    assert_eq!(paths(&world.own("top/sub")), [] as [&AbsPath; 0]);
}

#[test]
fn repositories_above_and_within_are_told_apart() {
    let world = World::new();
    world.git_dir("r/.git");
    world.git_dir("r/p/nested/.git");
    world.git_dir("r/p/bare.git");
    let found = world.find("r/p");
    let expected = [
        ("r/.git", Position::Above),
        ("r/p/bare.git", Position::Within),
        ("r/p/nested/.git", Position::Within),
    ];
    for (entry, position) in expected {
        let entry = world.root.below(entry);
        let one = found.iter().find(|found| found.entry == entry).unwrap();
        assert_eq!(one.position, position, "{entry}");
    }
    world.git_dir("r/p/.git");
    let found = world.find("r/p");
    assert_eq!(found[0].position, Position::Own);
    assert_eq!(found[1].position, Position::Beyond);
}

#[test]
fn what_a_configuration_names_is_found() {
    let world = World::new();
    world.git_dir("p/.git");
    world.write(
        "p/.git/config",
        "[core]\n\thooksPath = .githooks\n\tfsmonitor = ./tools/monitor 2\n\
         [include]\n\tpath = ../shared/config\n[alias]\n\tx = !absent/program\n",
    );
    world.write(
        "p/shared/config",
        "[include]\n\tpath = again\n[core]\n\thooksPath = more\n",
    );
    world.write("p/shared/again", "[include]\n\tpath = config\n");
    world.write("p/tools/monitor", "");
    let project = world.root.below("p");
    let expected = [
        ".githooks",
        "more",
        "shared/again",
        "shared/config",
        "tools/monitor",
    ];
    assert_eq!(
        world.own("p").obeyed,
        expected.map(|path| project.below(path))
    );
}

#[test]
fn hostile_files_end_quickly() {
    let world = World::new();
    world.git_dir("p/.git");
    // A pipe nobody writes to, a configuration that includes itself, a pointer to itself.
    let pipe = world.root.below("p/a/.git");
    world.write("p/a/x", "");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        pipe.as_path(),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::from_raw_mode(0o600),
        0,
    )
    .unwrap();
    std::fs::create_dir_all(world.root.below("p/.git/config.worktree").as_path()).unwrap();
    world.write(
        "p/.git/config",
        "[include]\n\tpath = config\n\tpath = config\n",
    );
    world.write("p/b/.git", "gitdir: .git\n");
    world.write("p/c/.git", "gitdir: ../c\n");
    world.write("p/d/.git", &"gitdir: x".repeat(100_000));
    let started = std::time::Instant::now();
    let found = world.find("p");
    // What hangs, hangs for ever.
    assert!(started.elapsed() < std::time::Duration::from_mins(1));
    for repository in found.iter().filter(|found| found.shape == Shape::Pointer) {
        assert_eq!(repository.git_dirs, []);
    }
}

/// What is remembered only saves time: after any change the same is found as without it.
#[test]
fn repositories_that_come_go_and_change_are_found_as_if_nothing_was_remembered() {
    let world = World::new();
    for number in 0..4 * WORTH_A_THREAD {
        world.write(&format!("p/d{number}/x"), "");
        if number % 2 == 0 {
            world.git_dir(&format!("p/d{number}/.git"));
        }
    }
    let project = world.root.below("p");
    let mut remembering = Search::new(project.clone());
    remembering.state = Some(world.root.below("state").as_path().to_owned());
    let both = |search: &Search| {
        let mut found = find(search, Reach::Tree, &Lookout::new()).unwrap();
        found.sort_by(|a, b| a.entry.cmp(&b.entry));
        found
    };
    let same = |count: usize| {
        let found = both(&remembering);
        assert_eq!(found, both(&Search::new(project.clone())));
        assert_eq!(found.len(), count);
    };
    // Long enough ago that the times of directories are believed.
    std::thread::sleep(std::time::Duration::from_millis(200));
    let count = 2 * WORTH_A_THREAD;
    for _ in 0..3 {
        same(count);
    }
    std::fs::remove_dir_all(project.below("d0/.git").as_path()).unwrap();
    same(count - 1);
    world.git_dir("p/d1/.git");
    same(count);
    world.write("p/d2/.git/config", "[core]\n\thooksPath = hooks\n");
    same(count);
    // What is made early is made again, and what was believed meanwhile is believed no longer.
    let lookout = Lookout::new();
    let mut times = 0;
    let made = find_then(&remembering, Reach::Tree, &lookout, |found| {
        times += 1;
        found.len()
    });
    assert_eq!((made.unwrap(), times), (count, 2));
    let gone = project.below("d0/.git");
    assert_eq!(lookout.look(gone.as_path()), Seen::Absent);
    let changed = both(&remembering).into_iter();
    let mut obeyed = changed.flat_map(|repository| repository.obeyed);
    assert_eq!(obeyed.next(), Some(project.below("d2/hooks")));
    // A directory becomes a file, and another one a link out of the project.
    std::fs::remove_dir_all(project.below("d4/.git").as_path()).unwrap();
    world.write("p/d4/.git", "gitdir: ../d6/.git\n");
    std::fs::rename(
        project.below("d8").as_path(),
        world.root.below("away").as_path(),
    )
    .unwrap();
    symlink("../away", project.below("d8").as_path()).unwrap();
    same(count - 1);
}

/// What was made of the remembered repositories is made once more only if those have changed.
#[test]
fn a_directory_that_changed_without_a_repository_changes_nothing() {
    let world = World::new();
    for number in 0..4 * WORTH_A_THREAD {
        world.git_dir(&format!("p/d{number}/.git"));
    }
    let mut search = Search::new(world.root.below("p"));
    search.state = Some(world.root.below("state").as_path().to_owned());
    // Long enough ago that the times of directories are believed.
    std::thread::sleep(std::time::Duration::from_millis(200));
    find(&search, Reach::Tree, &Lookout::new()).unwrap();
    let same = || {
        let presumed = presume(&search, Reach::Tree, &Lookout::new());
        let (_, walking) = presumed.unwrap();
        walking.unwrap().finds_the_same()
    };
    assert!(same());
    world.write("p/d3/new/file", "");
    std::fs::remove_dir_all(world.root.below("p/d5/.git/refs").as_path()).unwrap();
    assert!(same());
    world.git_dir("p/d3/new/.git");
    assert!(!same());
    std::fs::remove_dir_all(world.root.below("p/d3/new").as_path()).unwrap();
    assert!(same());
    std::fs::remove_dir_all(world.root.below("p/d7/.git").as_path()).unwrap();
    assert!(!same());
}

/// A variable counts only for what is a repository, and the caller's own.
#[test]
fn what_a_variable_names_is_found() {
    let world = World::new();
    let elsewhere = world.git_dir("elsewhere/store");
    world.write("elsewhere/store/config", "[core]\n\thooksPath = hooks\n");
    world.write("plain/HEAD", "ref: refs/heads/main\n");
    world.write("p/x", "");
    let named = |variable, value: &str| {
        let mut search = Search::new(world.root.below("p"));
        search.variables = vec![(variable, value.into())];
        let found = find(&search, Reach::Own, &Lookout::new()).unwrap();
        let mut named = found
            .into_iter()
            .filter(|found| found.position == Position::Named);
        named.next()
    };
    for variable in VARIABLES {
        let found = named(variable, "../elsewhere/store").unwrap();
        assert_eq!(paths(&found), [&elsewhere]);
        // Its hooks are those that git would look for in the project.
        assert_eq!(found.obeyed, [world.root.below("p/hooks")]);
        for value in ["../plain", "../elsewhere", "../nothing", ""] {
            assert_eq!(named(variable, value), None, "{value}");
        }
    }
    symlink("store", world.root.below("elsewhere/link").as_path()).unwrap();
    let found = named("GIT_DIR", "../elsewhere/link").unwrap();
    assert_eq!(paths(&found), [&elsewhere]);
}

/// Where not all can be told one by one, all are told as one.
#[test]
fn working_trees_that_are_too_many_are_one() {
    let world = World::new();
    let git = world.git_dir("p/.git");
    let module = world.git_dir("p/.git/modules/m");
    let roles = || {
        let own = world.own("p").git_dirs.into_iter();
        let own = own.filter(|directory| directory.role != Role::Module);
        own.map(|directory| (directory.path, directory.role))
            .collect::<Vec<_>>()
    };
    world.write("p/.git/worktrees/a/commondir", "../..\n");
    world.write("p/.git/modules/m/worktrees/b/commondir", "../..\n");
    let main = (git.clone(), Role::Main);
    let linked = |directory: &AbsPath, name: &str| (directory.below(name), Role::Worktree);
    let inner = linked(&module, "worktrees/b");
    let outer = linked(&git, "worktrees/a");
    assert_eq!(roles(), [main.clone(), inner, outer]);

    for number in 0..2000 {
        for directory in [&git, &module] {
            let path = directory.below(format!("worktrees/d{number}"));
            std::fs::create_dir(path.as_path()).unwrap();
        }
    }
    let all = |directory: &AbsPath| (directory.below("worktrees"), Role::Worktrees);
    assert_eq!(roles(), [main.clone(), all(&module), all(&git)]);

    std::fs::remove_dir_all(git.below("worktrees").as_path()).unwrap();
    symlink("modules/m/worktrees", git.below("worktrees").as_path()).unwrap();
    assert_eq!(roles(), [main, all(&module), all(&git)]);
}

/// The user's own configuration counts in every repository, wherever it is written and whatever it includes.
#[test]
fn what_the_users_own_configuration_names_is_found() {
    let world = World::new();
    world.git_dir("p/.git");
    let home = world.root.below("home");
    world.write(
        "home/.gitconfig",
        "[include]\n\tpath = more\n\tpath = ~/else\n",
    );
    world.write(
        "home/more",
        "[core]\n\thooksPath = included\n[include]\n\tpath = .gitconfig\n",
    );
    let if_inside = "[includeIf \"gitdir:~/\"]\n\tpath = ";
    let team = world.root.below("p/team.conf");
    world.write(
        "home/else",
        &format!("{if_inside}{}\n", team.as_path().display()),
    );
    world.write("elsewhere/config", "[core]\n\thooksPath = named\n");
    let mut search = Search::new(world.root.below("p"));
    search.home = Some(home);
    search.configurations = vec![world.root.below("elsewhere/config").as_path().to_owned()];
    let found = find(&search, Reach::Own, &Lookout::new()).unwrap();
    let own = found.iter().find(|found| found.position == Position::Own);
    let expected = [
        "home/.gitconfig",
        "home/else",
        "home/more",
        "p/included",
        "p/named",
        "p/team.conf",
    ];
    assert_eq!(
        own.unwrap().obeyed,
        expected.map(|path| world.root.below(path))
    );
}
