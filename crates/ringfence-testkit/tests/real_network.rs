//! Programs that people use all day, reaching allowed hosts from inside, and no others.
//!
//! The servers run in a network that each test makes, on public addresses of its own loopback.
#![cfg(target_os = "linux")]

#[cfg(test)]
mod tests {
    use std::ffi::OsString;
    use std::path::Path;

    use ringfence_testkit::{
        Done, Network, Setup, Who, World, binaries, for_each_user, is_root, not_run,
    };

    const SPECS: [&str; 6] = [
        "address=93.184.216.34",
        "name=web.test=93.184.216.34",
        "name=git.test=93.184.216.34",
        "name=db.test=93.184.216.34",
        "name=denied.test=93.184.216.34",
        "name=localhost=127.0.0.1",
    ];

    const HOSTS: &str = r#""agent": {"sandbox_permissions": {
        "network_hosts": ["web.test:*", "git.test:*", "db.test:*"]}}"#;

    /// Waits until somebody listens.
    const HELPERS: &str = r#"
        await() { for try in $(seq 600); do (: </dev/tcp/93.184.216.34/$1) 2>/dev/null && return; sleep 0.1; done; echo "nobody at $1"; exit 9; }
        inside() { "$CONFINE" "$SETUP" bash -euo pipefail -c "$1"; }
        trap 'kill $(jobs -p) 2>/dev/null || true; wait || true' EXIT
    "#;

    fn installed(world: &World, program: &str) -> bool {
        let script = format!("command -v {program} >/dev/null");
        let found = Done::of(world.command("sh").args(["-c", &script])).status == 0;
        if !found {
            not_run(program);
        }
        found
    }

    /// Runs a script in a network of its own; `inside TEXT` in it is confined.
    #[track_caller]
    fn staged(world: &World, setup: &Setup, script: &str) -> Vec<String> {
        let network = Network::new(binaries!(), world, &SPECS);
        let script = format!("{HELPERS}\n{script}");
        let words: [OsString; 5] = [
            "env".into(),
            joined("CONFINE=", &world.path("bin/confine")),
            {
                let mut text = OsString::from("SETUP=");
                text.push(setup.to_argument());
                text
            },
            "bash".into(),
            "-euc".into(),
        ];
        let mut words = words.to_vec();
        words.push(script.into());
        let staged = network.run(words);
        staged.done.assert_status(0);
        assert_eq!(staged.asked("denied.test"), 0, "{staged:?}");
        staged.done.lines
    }

    fn joined(name: &str, path: &Path) -> OsString {
        let mut text = OsString::from(name);
        text.push(path);
        text
    }

    #[test]
    fn curl_speaks_http_and_http2() {
        for_each_user(binaries!(), |world| {
            if !installed(world, "node") || !installed(world, "openssl") {
                return;
            }
            let lines = staged(
                world,
                &world.setup_with(HOSTS),
                r#"
                openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=web.test \
                    -addext subjectAltName=DNS:web.test -keyout key.pem -out cert.pem 2>/dev/null
                node -e '
                    const fs = require("fs");
                    const http2 = require("http2"), http = require("http");
                    const answer = (request, response) => response.end("seen over " + request.httpVersion + "\n");
                    http2.createSecureServer({key: fs.readFileSync("key.pem"), cert: fs.readFileSync("cert.pem"), allowHTTP1: true}, answer).listen(8443, "93.184.216.34");
                    http.createServer(answer).listen(8080, "93.184.216.34");
                ' & await 8443; await 8080
                inside '
                    curl -sS http://web.test:8080/
                    curl -sS --noproxy "*" http://web.test:8080/
                    curl -sS --cacert cert.pem --http1.1 https://web.test:8443/
                    curl -sS --cacert cert.pem --http2 https://web.test:8443/
                    curl -sS --cacert cert.pem --http2 --noproxy "*" https://web.test:8443/
                    curl -sS --cacert cert.pem --http2 -x socks5h://127.0.0.1:61080 https://web.test:8443/
                    curl -sS --cacert cert.pem https://denied.test:8443/ || echo "status $?"
                    curl -sS --noproxy "*" http://denied.test:8080/ || echo "status $?"
                    curl -sS --cacert cert.pem --connect-to web.test:8443:web.test:8443 -H "Host: denied.test" http://web.test:8080/ -o /dev/null -w "%{http_code}\n"
                '
                "#,
            );
            let expected = [
                "seen over 1.1",
                "seen over 1.1",
                "seen over 1.1",
                "seen over 2.0",
                "seen over 2.0",
                "seen over 2.0",
                "status 56",
                "status 6",
                "400",
            ];
            assert_eq!(lines, expected);
        });
    }

    #[test]
    fn git_clones_over_http_and_its_own_protocol() {
        for_each_user(binaries!(), |world| {
            let lines = staged(
                world,
                &world.setup_with(HOSTS),
                r#"
                export GIT_CONFIG_GLOBAL=/dev/null GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@a GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@a
                mkdir -p ../served && git init -q -b main ../served/work && echo text > ../served/work/file
                git -C ../served/work add file && git -C ../served/work commit -qm one
                git clone -q --bare ../served/work ../served/repo.git && git -C ../served/repo.git update-server-info
                touch ../served/repo.git/git-daemon-export-ok
                git daemon --listen=93.184.216.34 --port=9418 --base-path="$(realpath ../served)" & await 9418
                python3 -m http.server --bind 93.184.216.34 -d ../served 8080 >/dev/null 2>&1 & await 8080
                inside '
                    cd /tmp
                    git clone -q http://web.test:8080/repo.git one && cat one/file
                    git clone -q git://git.test/repo.git two && cat two/file
                    git clone -q http://denied.test:8080/repo.git three 2>/dev/null || echo refused
                    git clone -q git://denied.test/repo.git four 2>/dev/null || echo refused
                '
                "#,
            );
            assert_eq!(lines, ["text", "text", "refused", "refused"]);
        });
    }

    #[test]
    fn ssh_reaches_an_allowed_host_and_git_goes_through_it() {
        let world = World::new(binaries!(), Who::Caller, "world".as_ref());
        if !is_root() || !Path::new("/usr/sbin/sshd").try_exists().unwrap() {
            return not_run("sshd and root");
        }
        let mut setup = world.setup_with(HOSTS);
        setup.settings = setup.settings.replacen(
            "\"additional_read_write_paths\"",
            "\"allowed_env_vars\": [\"HOME\", \"PATH\", \"GIT_SSH_COMMAND\"], \"additional_read_write_paths\"",
            1,
        );
        let lines = staged(
            &world,
            &setup,
            r#"
            mount -t tmpfs tmpfs /run && mkdir -m 755 /run/sshd
            ssh-keygen -q -t ed25519 -N "" -f host_key && ssh-keygen -q -t ed25519 -N "" -f client_key
            mkdir -p ../keys && cp client_key.pub ../keys/allowed && chmod 600 ../keys/allowed
            git init -q -b main work && git -C work -c user.name=a -c user.email=a@a commit -q --allow-empty -m one
            git clone -q --bare work repo.git
            /usr/sbin/sshd -D -e -f /dev/null -h "$PWD/host_key" -o ListenAddress=93.184.216.34:2222 -o StrictModes=no -o UsePAM=no \
                -o PidFile=none -o PermitRootLogin=yes -o AuthorizedKeysFile="$(realpath ../keys/allowed)" 2>sshd.log & await 2222
            export GIT_SSH_COMMAND="ssh -F none -i $PWD/client_key -o StrictHostKeyChecking=no -o UserKnownHostsFile=/tmp/known -o BatchMode=yes -p 2222"
            inside '
                $GIT_SSH_COMMAND root@git.test echo over ssh 2>/dev/null
                git clone -q ssh://root@git.test'"$PWD"'/repo.git /tmp/clone 2>/dev/null && git -C /tmp/clone log --format=%s
                $GIT_SSH_COMMAND root@denied.test true 2>&1 | grep -o "Could not resolve hostname denied.test" || true
                $GIT_SSH_COMMAND root@93.184.216.34 true 2>&1 | grep -o "Network is unreachable" || true
            '
            "#,
        );
        assert_eq!(
            lines,
            [
                "over ssh",
                "one",
                "Could not resolve hostname denied.test",
                "Network is unreachable"
            ]
        );
    }

    #[test]
    fn psql_reaches_an_allowed_database() {
        let world = World::new(binaries!(), Who::Caller, "world".as_ref());
        let found = std::fs::read_dir("/usr/lib/postgresql").ok();
        let bin = found.and_then(|mut all| Some(all.next()?.ok()?.path().join("bin")));
        let Some(bin) = bin.filter(|_| is_root() && installed(&world, "psql")) else {
            return not_run("postgres and root");
        };
        let script = format!(
            r#"
            as() {{ setpriv --reuid=65534 --regid=65534 --clear-groups "$@"; }}
            data=$(mktemp -d) && chown 65534:65534 "$data"
            as {bin}/initdb -D "$data/db" -A trust -U somebody >/dev/null
            echo "host all all 0.0.0.0/0 trust" >> "$data/db/pg_hba.conf"
            as {bin}/postgres -D "$data/db" -h 93.184.216.34 -p 5432 -k "$data" >/dev/null 2>&1 & await 5432
            for try in $(seq 300); do {bin}/pg_isready -q -h 93.184.216.34 && break; sleep 0.1; done
            inside '
                psql -h db.test -U somebody -d postgres -Atc "select 41 + 1"
                psql -h denied.test -U somebody -d postgres -Atc "select 1" 2>/dev/null || echo refused
            '
            kill %1; wait || true; rm -rf "$data"
            "#,
            bin = bin.display()
        );
        assert_eq!(
            staged(&world, &world.setup_with(HOSTS), &script),
            ["42", "refused"]
        );
    }

    #[test]
    fn runtimes_fetch() {
        for_each_user(binaries!(), |world| {
            if !installed(world, "node") {
                return;
            }
            let lines = staged(
                world,
                &world.setup_with(HOSTS),
                r#"
                mkdir -p ../served && echo served > ../served/index.html
                python3 -m http.server --bind 93.184.216.34 -d ../served 8080 >/dev/null 2>&1 & await 8080
                inside '
                    node -e "fetch(\"http://web.test:8080/\").then(r => r.text()).then(t => console.log(\"fetch\", t.trim()))"
                    node -e "fetch(\"http://denied.test:8080/\").then(r => console.log(\"fetch\", r.status), e => console.log(\"fetch failed\"))"
                    node -e "require(\"http\").get(\"http://web.test:8080/\", r => console.log(\"http\", r.statusCode))"
                    python3 -c "
from urllib.request import urlopen
from urllib.error import HTTPError
print(\"urllib\", urlopen(\"http://web.test:8080/\").read().decode().strip())
try: urlopen(\"http://denied.test:8080/\")
except HTTPError as error: print(\"urllib\", error.code, \"--allow-host denied.test:8080\" in error.read().decode())
"
                    python3 -m http.server --bind 127.0.0.1 3000 >/dev/null 2>&1 & server=$!
                    for try in $(seq 300); do curl -s http://localhost:3000/ >/dev/null && break; sleep 0.1; done
                    curl -s -o /dev/null -w "own server %{http_code}\n" http://localhost:3000/
                    kill $server
                '
                "#,
            );
            // A runtime that knows the variable asks the proxy, which answers; others get no name.
            let denied = ["fetch 403", "fetch failed"];
            assert!(denied.contains(&lines[1].as_str()), "{lines:?}");
            assert_eq!(lines[0], "fetch served");
            assert_eq!(
                lines[2..],
                [
                    "http 200",
                    "urllib served",
                    "urllib 403 True",
                    "own server 200"
                ]
            );
        });
    }

    #[test]
    fn package_managers_install_from_an_allowed_index() {
        for_each_user(binaries!(), |world| {
            if !installed(world, "npm") || !installed(world, "pip3") {
                return;
            }
            let lines = staged(
                world,
                &world.setup_with(HOSTS),
                r#"
                mkdir -p ../served/simple/tiny ../served/npm
                python3 - <<'EOF'
import zipfile, json, hashlib, base64, tarfile, io
with zipfile.ZipFile("../served/simple/tiny/tiny-1.0-py3-none-any.whl", "w") as wheel:
    wheel.writestr("tiny.py", "print('tiny from pip')\n")
    wheel.writestr("tiny-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n")
    wheel.writestr("tiny-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
    wheel.writestr("tiny-1.0.dist-info/RECORD", "tiny.py,,\ntiny-1.0.dist-info/METADATA,,\ntiny-1.0.dist-info/WHEEL,,\ntiny-1.0.dist-info/RECORD,,\n")
with open("../served/simple/tiny/index.html", "w") as page:
    page.write('<a href="tiny-1.0-py3-none-any.whl">tiny-1.0-py3-none-any.whl</a>')
with tarfile.open("../served/tiny-1.0.0.tgz", "w:gz") as archive:
    for name, text in (("package/package.json", '{"name": "tiny", "version": "1.0.0"}'), ("package/index.js", "console.log('tiny from npm')")):
        entry = tarfile.TarInfo(name); entry.size = len(text)
        archive.addfile(entry, io.BytesIO(text.encode()))
digest = base64.b64encode(hashlib.sha512(open("../served/tiny-1.0.0.tgz", "rb").read()).digest()).decode()
version = {"name": "tiny", "version": "1.0.0", "dist": {"tarball": "http://web.test:8080/tiny-1.0.0.tgz", "integrity": "sha512-" + digest}}
json.dump({"name": "tiny", "dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": version}}, open("../served/npm/tiny", "w"))
EOF
                python3 -m http.server --bind 93.184.216.34 -d ../served 8080 >/dev/null 2>&1 & await 8080
                inside '
                    export HOME=/tmp
                    pip3 -q --disable-pip-version-check --no-cache-dir install --no-deps --target /tmp/libraries \
                        --index-url http://web.test:8080/simple --trusted-host web.test tiny
                    PYTHONPATH=/tmp/libraries python3 -c "import tiny"
                    mkdir /tmp/node && cd /tmp/node && echo "{}" > package.json
                    npm --silent --no-audit --no-fund --registry http://web.test:8080/npm/ install tiny >/dev/null
                    node -e "require(\"tiny\")"
                '
                "#,
            );
            assert_eq!(lines, ["tiny from pip", "tiny from npm"]);
        });
    }

    #[test]
    fn cargo_fetches_from_an_allowed_index() {
        let world = World::new(binaries!(), Who::Caller, "world".as_ref());
        let Some(bin) = Path::new(env!("CARGO")).parent() else {
            return not_run("cargo");
        };
        let keys = format!(
            r#"{HOSTS}, "env": {{"set": {{"CARGO_HOME": "/tmp/cargo", "PATH": "{}:/usr/bin:/bin"}}}}"#,
            bin.display()
        );
        let mut setup = world.setup_with(&keys);
        let grant = format!(
            "\"additional_executable_paths\": [{}, ",
            serde_json::to_string(bin.parent().unwrap()).unwrap()
        );
        setup.settings = setup
            .settings
            .replacen("\"additional_executable_paths\": [", &grant, 1);
        let lines = staged(
            &world,
            &setup,
            r#"
            mkdir -p ../served/index/ti/ny ../served/crates app/src app/.cargo
            python3 - <<'EOF'
import tarfile, io, json, hashlib
with tarfile.open("../served/crates/tiny-1.0.0.crate", "w:gz") as archive:
    for name, text in (("Cargo.toml", '[package]\nname = "tiny"\nversion = "1.0.0"\nedition = "2021"\n[workspace]\n'), ("src/lib.rs", "")):
        entry = tarfile.TarInfo("tiny-1.0.0/" + name); entry.size = len(text)
        archive.addfile(entry, io.BytesIO(text.encode()))
digest = hashlib.sha256(open("../served/crates/tiny-1.0.0.crate", "rb").read()).hexdigest()
json.dump({"dl": "http://web.test:8080/crates/{crate}-{version}.crate"}, open("../served/index/config.json", "w"))
line = {"name": "tiny", "vers": "1.0.0", "deps": [], "cksum": digest, "features": {}, "yanked": False}
open("../served/index/ti/ny/tiny", "w").write(json.dumps(line) + "\n")
EOF
            printf '[registries.here]\nindex = "sparse+http://web.test:8080/index/"\n' > app/.cargo/config.toml
            printf '[package]\nname = "app"\nversion = "0.1.0"\nedition = "2021"\n[workspace]\n[dependencies]\ntiny = { version = "1", registry = "here" }\n' > app/Cargo.toml
            echo > app/src/lib.rs
            python3 -m http.server --bind 93.184.216.34 -d ../served 8080 >/dev/null 2>&1 & await 8080
            inside 'cd app && cargo fetch -q 2>&1 && ls /tmp/cargo/registry/cache/*/'
            "#,
        );
        assert_eq!(lines, ["tiny-1.0.0.crate"]);
    }
}
