use std::path::Path;

use crate::world::World;

#[test]
fn every_example_is_sound() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/settings");
    let mut seen = 0;
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let world = World::new();
        for directory in [".cargo", ".cache", ".local/bin"] {
            std::fs::create_dir_all(world.home().join(directory)).unwrap();
        }
        world.user_settings(std::fs::read(&path).unwrap());
        for kind in ["tool", "terminal"] {
            let ran = world.run(&["settings", "check", "--kind", kind]);
            assert_eq!(ran.code, Some(0), "{}: {}", path.display(), ran.errors);
        }
        seen += 1;
    }
    assert!(seen >= 3, "only {seen} examples");
}
