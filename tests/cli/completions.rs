//! Completions, through the protocol between `orch` and its scripts and in real shells.

use crate::support::{Output, Sandbox};

/// Asks for the candidates at the end of a line typed in a directory of the project.
fn ask(sandbox: &Sandbox, shell: &str, directory: &str, line: &str) -> Output {
    // What bash would replace.
    let word = line.rsplit([' ', ':', '=']).next().unwrap_or_default();
    sandbox.orch_with("--", |command| {
        command
            .env_clear()
            .envs(std::env::vars_os().filter(|(name, _)| name == "SystemRoot"))
            .env("ORCH_COMPLETE", shell)
            .arg(line)
            .current_dir(sandbox.path(directory));
        if shell == "bash" {
            command.arg(word);
        }
    })
}

/// Returns the candidates without their explanations.
#[track_caller]
fn candidates(sandbox: &Sandbox, directory: &str, line: &str) -> String {
    let output = ask(sandbox, "fish", directory, line);
    assert_eq!((output.code(), &*output.stderr), (0, ""), "{line}");
    let values = output.stdout.lines().map(|line| {
        let (value, _) = line.split_once('\t').unwrap();
        value
    });
    values.collect::<Vec<_>>().join(" ")
}

/// Four stacks, two of them in `prod`.
fn sandbox() -> Sandbox {
    Sandbox::layout(
        "
        base [data]
        prod/app [app prod]
        prod/net [net prod]
        prod/net/dns",
    )
}

#[test]
fn policies_and_modules_have_names() {
    let sandbox = sandbox();
    sandbox.write(
        "/names.orch.hcl",
        "policy \"trigger\" \"retry\" {\n  file = \"r.rego\"\n}\n",
    );
    sandbox.write(
        "/prod/names.orch.hcl",
        "policy \"trigger\" \"chain\" {\n  file = \"c.rego\"\n}\n\
         module \"vpc\" {\n  source = \"/m\"\n  tag = \"v\"\n}\nmodule \"a\\nb\" {}\n",
    );
    let found = |line: &str| candidates(&sandbox, "/prod", &format!("orch {line}"));
    assert_eq!(found("policy eval "), "chain retry");
    assert_eq!(found("policy eval r"), "retry");
    assert_eq!(found("list --released "), "vpc@");
    assert_eq!(found("run --released v"), "vpc@");
    assert_eq!(found("run --released x"), "");
}

#[test]
fn the_state_is_a_base_where_there_is_one() {
    let sandbox = sandbox();
    let found = |line: &str| candidates(&sandbox, "/prod", &format!("orch {line}"));
    assert_eq!(found("list --changed --base "), "");
    let state = "orch {\n  config {\n    state {\n      project = \"acme\"\n    }\n  }\n}\n";
    sandbox.write("/state.orch.hcl", state);
    assert_eq!(found("list --changed --base "), "applied");
    assert_eq!(found("list --changed --base=a"), "--base=applied");
    assert_eq!(found("run --changed -B ap"), "applied");
    assert_eq!(found("list --changed --base m"), "");
}

#[test]
fn stacks_are_relative_to_where_the_line_is_typed() {
    let sandbox = sandbox();
    let table = [
        ("/", "why ", "base prod/app prod/net prod/net/dns"),
        ("/", "why prod/n", "prod/net prod/net/dns"),
        ("/", "why /p", "/prod/app /prod/net /prod/net/dns"),
        ("/", "why base --after prod/a", "prod/app"),
        ("/", "trigger b", "base"),
        ("/", "list --match pr", "prod/app prod/net prod/net/dns"),
        ("/", "list --exclude=b", "--exclude=base"),
        ("/", "runs logs last b", "base"),
        ("/", "why nothing", ""),
        ("/", "-C prod why ", "app net net/dns"),
        ("/", "why -C prod -C net ", ". dns"),
        ("/", "--changed -Cprod why a", "app"),
        ("/", "-C nowhere why b", ""),
        ("/prod", "why ", "app net net/dns"),
        ("/prod", "why ..", "../"),
        ("/prod", "why ../b", "../base"),
        ("/prod", "why /b", "/base"),
        ("/prod", "--root why b", "base"),
        ("/prod/net", "why ", ". dns"),
        ("/prod/net", "why ../../../b", ""),
    ];
    for (directory, line, expected) in table {
        let found = candidates(&sandbox, directory, &format!("orch {line}"));
        assert_eq!(found, expected, "`orch {line}` in {directory}");
    }
}

/// Two directories with instances, and a plain stack.
fn instances() -> Sandbox {
    Sandbox::new(
        r#"
//- /net/stack.orch.hcl
stack {
  for_each    = ["dev", "prod"]
  description = "net ${each.key}"
}
//- /net/dns/stack.orch.hcl
stack {
  for_each = { dev = 1 }
}
//- /other/stack.tm
stack {
}
//- /empty/stack.orch.hcl
stack {
  for_each = []
}
"#,
    )
}

#[test]
fn instances_are_completed_wherever_stacks_are() {
    let sandbox = instances();
    let net = r#"net["dev"] net["prod"]"#;
    let all = r#"net["dev"] net["prod"] net/dns["dev"]"#;
    let own = r#".["dev"] .["prod"] dns["dev"]"#;
    let table = [
        ("/", "why ne", all),
        (
            "/",
            "why ",
            r#"net["dev"] net["prod"] net/dns["dev"] other"#,
        ),
        ("/", "why net[", net),
        ("/", "why 'net[", net),
        ("/", "why 'net[\"", net),
        ("/", "why 'net[\"p", r#"net["prod"]"#),
        ("/", "why \"net[\\\"p", r#"net["prod"]"#),
        ("/", "why net\\[\\\"p", r#"net["prod"]"#),
        ("/", "why 'net[\"prod\"]", r#"net["prod"]"#),
        ("/", "why 'net[\"x", ""),
        // Without quotes, once a shell has removed them.
        ("/", "why net[p", r#"net["prod"]"#),
        ("/", "why net[\"p", r#"net["prod"]"#),
        ("/", "why net[x", ""),
        ("/", "why /net[", r#"/net["dev"] /net["prod"]"#),
        (
            "/",
            "why net/",
            r#"net/["dev"] net/["prod"] net/dns["dev"]"#,
        ),
        ("/", "why net/[", r#"net/["dev"] net/["prod"]"#),
        ("/", "why net/dns[", r#"net/dns["dev"]"#),
        ("/", "why other[", ""),
        ("/", "why other --after net[d", r#"net["dev"]"#),
        ("/", "trigger net[p", r#"net["prod"]"#),
        ("/", "runs logs last net[", net),
        ("/", "eval --stack net[", net),
        ("/", "list --match net[", net),
        ("/", "list --match n", all),
        ("/", "list --exclude=net[p", r#"--exclude=net["prod"]"#),
        ("/", "-C net why ", own),
        ("/net", "why ", own),
        ("/net", "why [", r#"["dev"] ["prod"]"#),
        ("/net", "why .[\\\"d", r#".["dev"]"#),
        ("/net", "why d", r#"dns["dev"]"#),
        ("/net/dns", "why ../[", r#"../["dev"] ../["prod"]"#),
    ];
    for (directory, line, expected) in table {
        let found = candidates(&sandbox, directory, &format!("orch {line}"));
        assert_eq!(found, expected, "`orch {line}` in {directory}");
    }
    let explained = ask(&sandbox, "fish", "/", "orch why net[").stdout;
    assert_eq!(
        explained,
        "net[\"dev\"]\tnet dev\nnet[\"prod\"]\tnet prod\n"
    );
    // At the root, too.
    sandbox.write("/stack.orch.hcl", "stack {\n  for_each = [\"r\"]\n}\n");
    assert_eq!(candidates(&sandbox, "/", "orch why /["), r#"/["r"]"#);
    assert_eq!(candidates(&sandbox, "/net", "orch why /["), r#"/["r"]"#);
}

/// A name that is completed is one that `orch` accepts.
#[test]
fn completed_instances_are_accepted() {
    let sandbox = instances();
    for (directory, line) in [
        ("/", ""),
        ("/", "net/"),
        ("/", "/net["),
        ("/net", ""),
        ("/net", "["),
        ("/net/dns", "../["),
    ] {
        for name in candidates(&sandbox, directory, &format!("orch why {line}")).split(' ') {
            let output = sandbox.orch_with("why", |command| {
                command.arg(name).current_dir(sandbox.path(directory));
            });
            assert_eq!(
                output.stdout.matches("\nits inputs ").count(),
                1,
                "{name}: {output}"
            );
        }
    }
}

#[test]
fn many_instances_are_completed_once_their_directory_is_typed() {
    let sandbox = instances();
    let keys: Vec<String> = (0..150).map(|key| format!("\"k{key}\"")).collect();
    let text = format!("stack {{\n  for_each = [{}]\n}}\n", keys.join(", "));
    sandbox.write("/many/stack.orch.hcl", text);
    assert_eq!(
        candidates(&sandbox, "/", "orch why "),
        "many net net/ other"
    );
    assert_eq!(candidates(&sandbox, "/", "orch why m"), "many");
    assert_eq!(
        candidates(&sandbox, "/", "orch why ne"),
        r#"net["dev"] net["prod"] net/dns["dev"]"#
    );
    let found = candidates(&sandbox, "/", "orch why many[");
    assert_eq!(found.split(' ').count(), 150);
    assert_eq!(
        candidates(&sandbox, "/", "orch why 'many[\"k14"),
        r#"many["k14"] many["k140"] many["k141"] many["k142"] many["k143"] many["k144"] many["k145"] many["k146"] many["k147"] many["k148"] many["k149"]"#
    );
}

#[cfg(unix)]
#[test]
fn globs_complete_no_directory_that_is_read_otherwise() {
    let sandbox = instances();
    sandbox.write("/a[b]/stack.tm", "stack {\n}\n");
    sandbox.write("/a*/stack.orch.hcl", "stack {\n  for_each = [\"x\"]\n}\n");
    sandbox.write(
        "/z/stack.orch.hcl",
        "stack {\n  for_each = [\"*\", \"{!}\"]\n}\n",
    );
    assert_eq!(candidates(&sandbox, "/", "orch list --match a"), "");
    assert_eq!(candidates(&sandbox, "/", "orch why a"), r#"a*["x"] a[b]"#);
    assert_eq!(
        candidates(&sandbox, "/", "orch list --match z"),
        r#"z["*"] z["{!}"]"#
    );
    assert_eq!(
        sandbox.orch("list --match 'z[\"{!}\"]'").to_string(),
        "z[\"{!}\"]\n"
    );
}

#[test]
fn tags_are_completed_one_by_one() {
    let sandbox = sandbox();
    let table = [
        ("list --tags ", "app data net prod"),
        ("list --tags prod:a", "prod:app"),
        ("list --tags data,prod:n", "data,prod:net"),
        ("list --tags=prod:n", "--tags=prod:net"),
        ("list --no-tags data,p", "data,prod"),
        ("list --no-tags data:p", ""),
        ("run --limit p", "prod="),
        ("--tags p", "prod"),
        ("trigger / --recursive --tags d", "data"),
    ];
    for (line, expected) in table {
        let found = candidates(&sandbox, "/", &format!("orch {line}"));
        assert_eq!(found, expected, "orch {line}");
    }
}

#[test]
fn flags_commands_and_topics_are_completed() {
    let sandbox = sandbox();
    let table = [
        ("orch val", "validate"),
        ("orch runs sh", "show"),
        ("orch list --fo", "--format"),
        ("orch list --format j", "json"),
        ("orch run --on-error s", "stop skip-dependents"),
        ("orch help cha", "changes"),
        ("orch help vali", "validate"),
        ("orch --no-ta", "--no-tags"),
        ("orch why --no-rec", "--no-recursive"),
        ("orch run -- terraform ", ""),
    ];
    for (line, expected) in table {
        assert_eq!(candidates(&sandbox, "/", line), expected, "{line}");
    }
    for (line, directory) in [("orch -C pro", "prod"), ("orch -C prod -C a", "app")] {
        let expected = format!("{directory}{}", std::path::MAIN_SEPARATOR);
        assert_eq!(candidates(&sandbox, "/", line), expected, "{line}");
    }
    // Flags are candidates where nothing else can stand.
    assert!(candidates(&sandbox, "/", "orch list ").contains("--changed"));
}

#[cfg(unix)]
#[test]
fn runs_are_completed_by_age_and_by_id() {
    let sandbox = sandbox();
    assert_eq!(candidates(&sandbox, "/", "orch runs show l"), "");
    for command in ["true", "false", "true again"] {
        let output = sandbox.orch(&format!("run -q {command}"));
        assert_eq!(output.code(), i32::from(command == "false"), "{output}");
    }
    for (id, name) in crate::support::run_ids(&sandbox)
        .into_iter()
        .zip(["OLD", "MIDDLE", "NEW"])
    {
        sandbox.learn(id, name);
    }
    for line in ["run --resume ", "runs show ", "runs logs "] {
        let found = candidates(&sandbox, "/prod", &format!("orch {line}"));
        assert_eq!(found, "last NEW MIDDLE OLD", "{line}");
    }
    let ages = candidates(&sandbox, "/", "orch runs show last~");
    assert_eq!(ages, "last~1 last~2");
    let explained = ask(&sandbox, "fish", "/", "orch runs show last").stdout;
    assert_eq!(
        explained,
        "last\tsucceeded: true again\nlast~1\tfailed: false\nlast~2\tsucceeded: true\n"
    );
}

#[test]
fn each_shell_gets_candidates_as_it_reads_them() {
    let sandbox = Sandbox::new(
        "
//- /a/b c/stack.tm
stack {
  description = \"colons: two, a \\\\ too\"
}
//- /a/it's/stack.tm
stack {
}
",
    );
    let table = [
        ("bash", "a/b\\ c\na/it\\'s\n"),
        ("zsh", "=a/b c:colons: two, a \\\\ too\n=a/it's:\n"),
        ("fish", "a/b c\tcolons: two, a \\ too\na/it's\t\n"),
    ];
    for (shell, expected) in table {
        let output = ask(&sandbox, shell, "/", "orch why ");
        assert_eq!(output.to_string(), expected, "{shell}");
    }
    // Elvish and PowerShell have the scripts and the protocol of clap.
    for shell in ["elvish", "powershell"] {
        let output = sandbox.orch_with("-- orch why a/b", |command| {
            command
                .env("ORCH_COMPLETE", shell)
                .env("_CLAP_COMPLETE_INDEX", "2");
        });
        let found = output.stdout.lines().next().unwrap_or_default();
        assert!(found.starts_with("a/b c"), "{shell}: {output}");
    }
}

#[test]
fn a_broken_project_has_the_candidates_that_can_be_read() {
    let sandbox = sandbox();
    sandbox.write("/broken/stack.tm", "stack {\n");
    sandbox.write("/prod/app/more.tm", "nonsense {\n}\n");
    sandbox.write("/cycle/stack.tm", "stack {\n  after = [\"/base\"]\n}\n");
    sandbox.write("/base/more.tm", "stack {\n  after = [\"/cycle\"]\n}\n");
    for shell in ["bash", "zsh", "fish"] {
        let output = ask(&sandbox, shell, "/", "orch why ");
        assert_eq!((output.code(), &*output.stderr), (0, ""), "{shell}");
        for stack in ["base", "cycle", "prod/net"] {
            assert!(output.stdout.contains(stack), "{shell}: {output}");
        }
    }
    let elsewhere = Sandbox::unmarked("//- /x/broken.tm\norch {\n");
    for line in ["orch why ", "orch runs show ", "orch list --tags "] {
        let output = ask(&elsewhere, "bash", "/x", line);
        assert_eq!((output.code(), &*output.stderr), (0, ""), "{line}");
    }
    for line in [
        "",
        " ",
        "orch",
        "\"",
        "orch why \\",
        "orch nonsense --x ",
        "x y z",
    ] {
        let output = ask(&sandbox, "bash", "/", line);
        assert_eq!((output.code(), &*output.stderr), (0, ""), "{line}");
    }
}

#[test]
fn candidates_are_the_stacks_that_are_listed() {
    let sandbox = Sandbox::layout(
        "
        / [base]
        a [x y]
        a/b/c [x]
        a-b
        skipped/a [skipped]
        skipped/deep/b
        .hidden/a [hidden]
        nested/project/a [nested]
        nested/b",
    );
    sandbox.write("/skipped/.tmskip", "");
    sandbox.write("/nested/project/root.tm", "orch { root = true }\n");
    sandbox.write("/a/own.orch.hcl", "stack {\n  watch = [\"/b\"]\n}\n");
    sandbox.write("/no/stack.tm", "# stack {}\nglobals {\n  stack = 1\n}\n");
    for directory in ["/", "/a", "/nested"] {
        let listed = sandbox.orch_in(directory, "list").stdout;
        let listed: Vec<&str> = listed.lines().collect();
        let found = candidates(&sandbox, directory, "orch why ");
        assert_eq!(found, listed.join(" "), "{directory}");
    }
    for directory in ["skipped/", ".hidden/", "nested/project/", "skipped/deep/b"] {
        let found = candidates(&sandbox, "/", &format!("orch why {directory}"));
        assert!(!found.contains(directory), "{found}");
    }
    let tags = ask(&sandbox, "fish", "/", "orch list --tags ").stdout;
    assert_eq!(tags, "base\t\nx\t\ny\t\n");
    sandbox.write("/.tmskip", "");
    assert_eq!(candidates(&sandbox, "/", "orch why /"), "/");
}

#[cfg(unix)]
#[test]
fn names_with_control_characters_are_left_out() {
    let sandbox = sandbox();
    sandbox.write("/prod/new\nline/stack.tm", "stack {\n}\n");
    sandbox.write("/prod/esc\u{1b}[31m/stack.tm", "stack {\n}\n");
    let found = candidates(&sandbox, "/", "orch why prod/");
    assert_eq!(found, "prod/app prod/net prod/net/dns");
}

#[test]
fn many_stacks_are_completed_directory_by_directory() {
    let sandbox = Sandbox::new("");
    for stack in 0..60 {
        for region in ["eu", "us"] {
            let path = format!("/prod/{region}/app{stack}/stack.tm");
            sandbox.write(&path, "stack {\n}\n");
        }
    }
    let table = [
        ("orch why ", "prod/eu/ prod/us/"),
        ("orch why prod/", "prod/eu/ prod/us/"),
        ("orch why /p", "/prod/eu/ /prod/us/"),
        ("orch why prod/u", "prod/us/app0 prod/us/app1"),
    ];
    for (line, expected) in table {
        let found = candidates(&sandbox, "/", line);
        assert!(found.starts_with(expected), "{line}: {found}");
        assert_eq!(found.contains("app"), expected.contains("app"), "{found}");
    }
    // A stack along the way is one of the candidates.
    sandbox.write("/prod/stack.tm", "stack {\n}\n");
    sandbox.write("/prod/us/stack.tm", "stack {\n}\n");
    let found = candidates(&sandbox, "/", "orch why ");
    assert_eq!(found, "prod prod/");
    let found = candidates(&sandbox, "/", "orch why prod/");
    assert_eq!(found, "prod/ prod/eu/ prod/us prod/us/");
}

#[test]
fn the_variable_alone_changes_no_command() {
    let sandbox = sandbox();
    let list = |value: &str| {
        let output = sandbox.orch_with("list", |command| {
            command.env("ORCH_COMPLETE", value);
        });
        output.to_string()
    };
    assert_eq!(list("bash"), sandbox.orch("list").to_string());
    assert_eq!(list(""), sandbox.orch("list").to_string());
    let output = ask(&sandbox, "tcsh", "/", "orch ");
    assert_eq!(output.code(), 64);
}

#[test]
fn each_script_says_how_to_install_it_and_calls_orch() {
    let sandbox = Sandbox::new("");
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let output = sandbox.orch(&format!("completions {shell}"));
        assert_eq!((output.code(), &*output.stderr), (0, ""), "{shell}");
        let script = output.stdout;
        assert!(script.starts_with('#'), "{script}");
        let install = format!("orch completions {shell}");
        assert!(script.contains(&install), "{script}");
        assert!(script.contains("ORCH_COMPLETE"), "{script}");
    }
    assert_eq!(sandbox.orch("completions tcsh").code(), 64);
    assert_eq!(sandbox.orch("completions").code(), 64);
}

#[cfg(unix)]
mod shells {
    use std::process::Command;

    use super::*;
    use crate::support::{orch_program, skipped};

    /// Names that a shell must not take apart.
    const NAMES: [&str; 8] = ["a b", "a$HOME", "a'b", "a\"b", "a*", "a:b", "a\\b", "größe"];

    /// Runs a script in a shell that knows `orch`; `None` if there is no such shell.
    fn run(sandbox: &Sandbox, shell: &[&str], script: &str) -> Option<Vec<String>> {
        if Command::new(shell[0]).arg("--version").output().is_err() {
            skipped(format!("there is no {} on the PATH", shell[0]));
            return None;
        }
        let mut command = Command::new(shell[0]);
        sandbox.isolate(&mut command);
        let programs = orch_program().parent().unwrap().display();
        let path = format!("{programs}:{}", std::env::var("PATH").unwrap());
        let output = command
            .args(&shell[1..])
            .args(["-c", script])
            .env("PATH", path)
            .env("LC_ALL", "C.UTF-8")
            .current_dir(sandbox.path("/"))
            .output()
            .unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(stderr.is_empty(), "{shell:?}: {stderr}");
        let stdout = String::from_utf8(output.stdout).unwrap();
        Some(stdout.lines().map(str::to_owned).collect())
    }

    fn odd_names() -> Sandbox {
        let sandbox = sandbox();
        for name in NAMES {
            sandbox.write(&format!("/odd/{name}/stack.tm"), "stack {\n}\n");
        }
        sandbox
    }

    /// The stacks with odd names, in path order.
    fn expected() -> Vec<String> {
        let mut paths = NAMES.map(|name| format!("odd/{name}"));
        paths.sort();
        paths.to_vec()
    }

    #[test]
    fn bash_reads_back_what_it_completes() {
        let sandbox = odd_names();
        let complete = r#"
            eval "$(orch completions bash)"
            complete -p orch >/dev/null || exit
            at_end_of() { # what bash sets: the line, and the word that the candidates replace
                COMP_LINE=$1 COMP_POINT=${#1}
                _orch orch "$2" ''
            }
        "#;
        let script = format!(
            r#"{complete}
            at_end_of 'orch why odd/' 'odd/'
            for candidate in "${{COMPREPLY[@]}}"; do eval "printf '%s\n' $candidate"; done"#
        );
        if let Some(found) = run(&sandbox, &["bash", "--norc"], &script) {
            assert_eq!(found, expected());
        }
        let script = format!(
            r#"{complete}
            at_end_of 'orch list --tags prod:n' n; echo "${{COMPREPLY[@]}}"
            at_end_of 'orch list --tags=prod:' ''; echo "${{COMPREPLY[@]}}"
            at_end_of 'orch why "odd/a b' 'odd/a b'; echo "${{COMPREPLY[@]}}""#
        );
        if let Some(found) = run(&sandbox, &["bash", "--norc"], &script) {
            assert_eq!(found, ["net", "app data net prod", "odd/a b"]);
        }
    }

    #[test]
    fn bash_reads_back_the_instances_that_it_completes() {
        let sandbox = instances();
        // The word that bash replaces begins after the last quote that is open.
        let script = r#"
            eval "$(orch completions bash)"
            try() { # the line, what of it bash replaces, and what it adds
                local candidate kept=${1%"$2"} end=${3-}
                COMP_LINE=$1 COMP_POINT=${#1}
                _orch orch "$2" ''
                for candidate in "${COMPREPLY[@]}"; do
                    eval "$kept$candidate$end" | head -n 1
                done
            }
            try 'orch why ne' 'ne'
            try 'orch why net[' 'net['
            try 'orch why net[p' 'net[p'
            try 'orch why net\[\"p' 'net\[\"p'
            try "orch why 'net[\"p" 'net["p' "'"
            try 'orch why "net[\"p' 'net[\"p' '"'
            try 'orch why net["p' 'p' '"'
            try 'orch list --match net[p' 'net[p'
            try 'orch list --match=net[p' 'net[p'
        "#;
        let Some(found) = run(&sandbox, &["bash", "--norc"], script) else {
            return;
        };
        let mut lines: Vec<String> = Vec::new();
        for name in ["/net[\"dev\"]", "/net[\"prod\"]", "/net/dns[\"dev\"]"] {
            lines.push(format!("{name} is selected"));
        }
        lines.extend(lines[..2].to_vec());
        lines.extend(vec![lines[1].clone(); 5]);
        lines.extend(vec!["net[\"prod\"]".to_owned(); 2]);
        assert_eq!(found, lines);
    }

    #[test]
    fn zsh_and_fish_offer_instances() {
        let sandbox = instances();
        let script = r#"
            compdef() { }
            _describe() { local -a found=("${(@P)3}"); print -rl -- "${found[@]}" }
            eval "$(orch completions zsh)"
            for typed in 'ne' 'net\[\"p' 'net\['; do
                words=(orch why $typed) CURRENT=3 PREFIX=$typed IPREFIX= QIPREFIX=
                _orch
            done
            words=(orch why "'net[\"p") CURRENT=3 PREFIX='net["p' IPREFIX= QIPREFIX="'"
            _orch
        "#;
        let (dev, prod) = ("net[\"dev\"]", "net[\"prod\"]");
        let (dev_told, prod_told) = (format!("{dev}:net dev"), format!("{prod}:net prod"));
        if let Some(found) = run(&sandbox, &["zsh", "-f"], script) {
            let (dev, prod) = (dev_told.clone(), prod_told.clone());
            let dns = "net/dns[\"dev\"]:".to_owned();
            let lines = [
                dev.clone(),
                prod.clone(),
                dns,
                prod.clone(),
                dev,
                prod.clone(),
                prod,
            ];
            assert_eq!(found, lines);
        }
        let script = r#"
            orch completions fish | source
            complete --do-complete 'orch why ne'
            complete --do-complete 'orch why net['
            complete --do-complete 'orch why net\[\"p'
            complete --do-complete "orch why 'net[\"p"
            complete --do-complete 'orch why net["p'
        "#;
        if let Some(found) = run(&sandbox, &["fish", "--no-config"], script) {
            let (dev, prod) = (format!("{dev}\tnet dev"), format!("{prod}\tnet prod"));
            let dns = "net/dns[\"dev\"]".to_owned();
            let lines = [
                dev.clone(),
                prod.clone(),
                dns,
                dev,
                prod.clone(),
                prod.clone(),
                prod.clone(),
                prod,
            ];
            assert_eq!(found, lines);
        }
    }

    /// What each shell makes of a name that is quoted as the help says, and of one that is not quoted.
    #[test]
    fn shells_keep_the_quotes_of_a_key_only_in_single_quotes() {
        let sandbox = instances();
        for shell in [
            &["bash", "--norc"][..],
            &["zsh", "-f"],
            &["fish", "--no-config"],
            &["sh"],
        ] {
            let script = "orch list --match 'net[\"dev\"]'; orch list --match net\\[\\\"dev\\\"\\]";
            if let Some(found) = run(&sandbox, shell, script) {
                assert_eq!(found, ["net[\"dev\"]", "net[\"dev\"]"], "{shell:?}");
            }
        }
        let script = "orch why net[\"dev\"] 2>&1";
        for shell in [&["bash", "--norc"][..], &["fish", "--no-config"], &["sh"]] {
            if let Some(found) = run(&sandbox, shell, script) {
                let said = "error: `net[dev]`: the quotes around the key are missing; in a shell, write `'net[\"dev\"]'`";
                assert_eq!(found, [said], "{shell:?}");
            }
        }
    }

    #[test]
    fn zsh_completes_what_orch_says() {
        let sandbox = odd_names();
        // The functions of its completion system work only in an interactive line editor.
        let script = r#"
            compdef() { print -r -- "$*" }
            _describe() { local -a found=("${(@P)3}"); print -rl -- "${@:4}" "${found[@]}" }
            eval "$(orch completions zsh)"
            words=(orch why odd/) CURRENT=3 PREFIX=odd/ IPREFIX= QIPREFIX=
            _orch
            words=(orch run --limit p) CURRENT=4 PREFIX=p
            _orch
        "#;
        let Some(found) = run(&sandbox, &["zsh", "-f"], script) else {
            return;
        };
        let escaped = |path: String| path.replace('\\', "\\\\").replace(':', "\\:") + ":";
        let mut lines = vec!["_orch orch".to_owned()];
        lines.extend(expected().into_iter().map(escaped));
        lines.extend(["-S", "", "prod=:"].map(str::to_owned));
        assert_eq!(found, lines);
    }

    #[test]
    fn fish_completes_what_orch_says() {
        let sandbox = odd_names();
        let script = "
            orch completions fish | source
            complete --do-complete 'orch why odd/'
            complete --do-complete 'orch list --tags prod:n'
        ";
        let Some(found) = run(&sandbox, &["fish", "--no-config"], script) else {
            return;
        };
        let mut lines = expected();
        lines.push("prod:net".to_owned());
        assert_eq!(found, lines);
    }
}
