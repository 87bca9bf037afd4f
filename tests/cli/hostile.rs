//! Names and contents that nobody would write on purpose.

use insta::assert_snapshot;

use crate::support::{Sandbox, skipped};
#[cfg(unix)]
// Contents.
#[test]
fn a_file_that_is_not_utf8_is_named() {
    let sandbox = Sandbox::layout("b");
    sandbox.write("/a/stack.tm", b"stack {\n  name = \"caf\xe9\"\n}\n");
    assert_snapshot!(sandbox.orch("list"), @r#"
    [stderr]
    error: this file is not UTF-8
     --> a/stack.tm:2:14
      |
    2 |   name = "caf�"
      |              ^ the first byte that is not text
      |
      = help: save the file as UTF-8

    [exit status 3]
    "#);
}

#[test]
fn a_file_of_utf16_is_named() {
    let sandbox = Sandbox::layout("b");
    sandbox.write("/a/stack.tm", b"\xff\xfes\0t\0a\0c\0k\0");
    let output = sandbox.orch("list");
    assert_eq!(output.code(), 3);
    assert!(output.stderr.contains("not UTF-8"), "{output}");
    assert!(output.stderr.contains("a/stack.tm"), "{output}");
}

#[test]
fn a_byte_order_mark_and_dos_line_ends_are_accepted() {
    let sandbox = Sandbox::new("");
    sandbox.write(
        "/a/stack.tm",
        "\u{feff}# a comment\r\nstack {\r\n  tags = [\"x\"]\r\n}\r\n",
    );
    assert_eq!(sandbox.orch("list --tags x").to_string(), "a\n");
}

#[test]
fn the_place_of_a_problem_is_right_behind_odd_characters() {
    let sandbox = Sandbox::new("");
    sandbox.write(
        "/a/stack.tm",
        "\u{feff}stack {\r\n\t/* größe 日本 👩‍👩‍👧 */ nme = \"x\"\r\n}\r\n",
    );
    let output = sandbox.orch("list --format json").data();
    assert_eq!(output["diagnostics"][0]["line"], 2);
    assert_snapshot!(sandbox.orch("list"), @r#"
    [stderr]
    error: unknown attribute `nme` in `stack`
     --> a/stack.tm:2:27
      |
    1 | stack { 
      | ----- in this block
    2 |     /* größe 日本 👩   👩   👧 */ nme = "x" 
      |                                   ^^^ not an attribute of `stack`
      |
      = help: did you mean `name`?

    [exit status 3]
    "#);
}

#[test]
fn an_expression_of_64_levels_is_a_problem_with_a_way_out() {
    let sandbox = Sandbox::new("");
    let nest = |levels| {
        let nested = format!("{}\"deep\"{}", "(".repeat(levels), ")".repeat(levels));
        sandbox.write("/a/stack.tm", format!("stack {{\n  name = {nested}\n}}\n"));
    };
    nest(60);
    let document = sandbox.orch("list --format json").json();
    assert_eq!(document["stacks"][0]["name"], "deep");
    nest(64);
    let output = sandbox.orch("list");
    assert_eq!(output.code(), 3);
    assert!(output.stderr.contains("--> a/stack.tm:2:"), "{output}");
    assert!(
        output.stderr.contains("at most 64 nested levels"),
        "{output}"
    );
    assert!(
        output.stderr.contains("help: split the expression"),
        "{output}"
    );
}

#[test]
fn blocks_of_65_levels_are_a_problem_with_advice_about_blocks() {
    let sandbox = Sandbox::new("");
    let lines = |line: &str| format!("{line}\n").repeat(65);
    for line in ["nested {", "nested \"label\" {"] {
        let text = format!("stack {{\n}}\n{}{}", lines(line), lines("}"));
        sandbox.write("/a/stack.tm", text);
        let output = sandbox.orch("list");
        assert_eq!(output.code(), 3);
        assert!(
            output.stderr.contains("at most 64 nested levels"),
            "{output}"
        );
        assert!(
            output
                .stderr
                .contains("help: nest fewer blocks in each other"),
            "{output}"
        );
    }
}

#[test]
fn an_expression_of_absurd_depth_is_a_problem_and_no_crash() {
    let shapes: [(&str, String); 8] = [
        (
            "parentheses",
            format!("{}1{}", "(".repeat(20_000), ")".repeat(20_000)),
        ),
        (
            "lists",
            format!("{}{}", "[".repeat(20_000), "]".repeat(20_000)),
        ),
        (
            "objects",
            format!("{}1{}", "{a=".repeat(20_000), "}".repeat(20_000)),
        ),
        ("negations", format!("{}true", "!".repeat(20_000))),
        (
            "templates",
            format!("{}1{}", "\"${".repeat(5_000), "}\"".repeat(5_000)),
        ),
        ("conditions", "true ? 1 : ".repeat(20_000) + "1"),
        ("unclosed", "(".repeat(20_000)),
        (
            "calls",
            format!("{}1{}", "f(".repeat(20_000), ")".repeat(20_000)),
        ),
    ];
    for (shape, expression) in shapes {
        let sandbox = Sandbox::new("");
        sandbox.write(
            "/a/stack.tm",
            format!("stack {{\n  name = {expression}\n}}\n"),
        );
        let output = sandbox.orch("list");
        assert_eq!(output.code(), 3, "{shape}");
        assert!(
            output.stderr.len() < 100_000,
            "{shape}: {}",
            output.stderr.len()
        );
    }
}

#[test]
fn very_long_flat_expressions_are_no_crash() {
    let sandbox = Sandbox::new("");
    let sum = "1 + ".repeat(20_000) + "1";
    let path = format!("terramate{}", ".a".repeat(20_000));
    sandbox.write(
        "/a/stack.tm",
        format!("stack {{\n  name = \"${{{sum}}}\"\n}}\n"),
    );
    let output = sandbox.orch("list");
    assert!([0, 3].contains(&output.code()), "{}", output.code());
    sandbox.write("/a/stack.tm", format!("stack {{\n  name = {path}\n}}\n"));
    assert_eq!(sandbox.orch("list").code(), 3);
}

#[test]
fn blocks_of_absurd_depth_are_no_crash() {
    let sandbox = Sandbox::layout("b");
    let text = format!(
        "generate_hcl \"x\" {{\n{}{}}}\n",
        "b {\n".repeat(20_000),
        "}\n".repeat(20_000)
    );
    sandbox.write("/a/generate.tm", text);
    let output = sandbox.orch("list");
    assert!([0, 3].contains(&output.code()), "{}", output.code());
}

#[test]
fn numbers_of_absurd_size_are_no_crash() {
    for number in ["1e999999999", "1e-999999999", "9".repeat(5_000).as_str()] {
        let sandbox = Sandbox::new("");
        let text = format!("stack {{\n  name = \"${{{number} * 2 > 1 ? \"a\" : \"b\"}}\"\n}}\n");
        sandbox.write("/a/stack.tm", text);
        let output = sandbox.orch("list");
        assert!([0, 3].contains(&output.code()), "{output}");
    }
}

#[test]
fn a_file_that_is_too_large_is_named() {
    let sandbox = Sandbox::layout("a");
    sandbox.write("/b/big.tm", vec![b'#'; (16 << 20) + 1]);
    assert_snapshot!(sandbox.orch("list"), @"
    [stderr]
    error: `b/big.tm` is larger than 16 MiB
      = help: split it, or rename it if it is not configuration

    [exit status 3]
    ");
}

#[test]
fn a_nul_character_is_a_problem_and_no_crash() {
    let sandbox = Sandbox::layout("b");
    sandbox.write("/a/stack.tm", b"stack {\n  name = \"a\0b\"\n}\n");
    let output = sandbox.orch("list");
    assert!([0, 3].contains(&output.code()), "{output}");
    assert!(!output.stderr.contains('\0'));
}

#[cfg(unix)]
#[test]
fn a_nul_character_in_a_variable_is_a_problem_before_anything_runs() {
    let sandbox = Sandbox::new("");
    for (file, text) in [
        ("/a/stack.tm", "stack {\n  name = \"a\\u0000b\"\n}\n".to_owned()),
        (
            "/b/stack.tm",
            "stack {\n}\nterramate {\n  config {\n    run {\n      env {\n        X = \"\\u0000\"\n      }\n    }\n  }\n}\n".to_owned(),
        ),
    ] {
        sandbox.write(file, text);
        let directory = file.trim_end_matches("/stack.tm");
        let output = sandbox.orch_in(directory, "run true");
        assert_eq!(output.code(), 3, "{output}");
    }
}

#[test]
fn a_reference_with_a_nul_character_or_line_feed_names_nothing() {
    let sandbox = Sandbox::new("");
    sandbox.write(
        "/a/stack.tm",
        "stack {\n  after = [\"/x\\u0000\", \"/x\\ny\", \"\\u001b[31m\"]\n}\n",
    );
    let output = sandbox.orch("list");
    assert_eq!(output.code(), 0, "{output}");
    assert_eq!(
        output.stderr.matches("matches no stack").count(),
        3,
        "{output}"
    );
    assert!(!output.stderr.contains(['\0', '\u{1b}']), "{output}");
}

#[test]
fn escape_sequences_in_a_file_do_not_reach_the_terminal() {
    let sandbox = Sandbox::new("");
    sandbox.write(
        "/a/stack.tm",
        "stack {\n  nme = 1 # \u{1b}[2J\u{7}\u{202e}evil\n}\n",
    );
    assert_snapshot!(sandbox.orch("list"), @"
    [stderr]
    error: unknown attribute `nme` in `stack`
     --> a/stack.tm:2:3
      |
    1 | stack {
      | ----- in this block
    2 |   nme = 1 #  [2J    evil
      |   ^^^ not an attribute of `stack`
      |
      = help: did you mean `name`?

    [exit status 3]
    ");
}

// Names.

#[cfg(unix)]
const ODD_NAMES: [&str; 8] = [
    "a b",
    "it's \"quoted\"",
    "line\nfeed",
    "esc\u{1b}[31mred",
    "größe-日本",
    "back\\slash",
    "-C",
    "rtl\u{202e}txt",
];

#[cfg(unix)]
fn odd_names() -> Sandbox {
    let sandbox = Sandbox::new("");
    for name in ODD_NAMES {
        sandbox.write(&format!("/{name}/{name}.tm"), "stack {\n}\n");
    }
    sandbox
}

#[cfg(unix)]
#[test]
fn odd_names_are_listed_one_a_line_and_harmless() {
    assert_snapshot!(odd_names().orch("list"), @r#"
    -C
    a b
    back\slash
    esc\u{1b}[31mred
    größe-日本
    it's "quoted"
    line\nfeed
    rtl\u{202e}txt
    "#);
}

#[cfg(unix)]
#[test]
fn odd_names_are_exact_in_json() {
    let document = odd_names().orch("list --format json").json();
    let mut expected: Vec<String> = ODD_NAMES.iter().map(|name| format!("/{name}")).collect();
    expected.sort();
    let listed: Vec<&str> = document["stacks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|stack| stack["path"].as_str().unwrap())
        .collect();
    assert_eq!(listed, expected);
}

#[cfg(unix)]
#[test]
fn commands_run_in_directories_of_odd_names() {
    let sandbox = odd_names();
    let output = sandbox.orch("run --quiet touch ran");
    assert_eq!(output.to_string(), "");
    for name in ODD_NAMES {
        assert!(sandbox.path(&format!("/{name}/ran")).exists(), "{name}");
    }
    let output = sandbox.orch("run true");
    assert_snapshot!(output, @r#"
    [stderr]
    orch: /-C: true
    orch: /a b: true
    orch: /back\slash: true
    orch: /esc\u{1b}[31mred: true
    orch: /größe-日本: true
    orch: /it's "quoted": true
    orch: /line\nfeed: true
    orch: /rtl\u{202e}txt: true
    orch: 8 succeeded in [time]
    "#);
}

#[cfg(unix)]
#[test]
fn odd_names_are_harmless_in_drawings_and_environments() {
    let sandbox = odd_names();
    for arguments in [
        "graph",
        "graph --format mermaid",
        "env",
        "list --why --order",
        "run --dry-run true",
    ] {
        let output = sandbox.orch(arguments);
        assert_eq!(output.code(), 0, "{arguments}");
        assert!(
            !output.stdout.contains(['\u{1b}', '\u{202e}']),
            "{arguments}"
        );
        assert!(!output.stdout.contains("line\nfeed"), "{arguments}");
    }
}

#[cfg(unix)]
#[test]
fn odd_names_are_harmless_in_problems() {
    let sandbox = Sandbox::new("");
    sandbox.write("/line\nfeed\u{1b}[31m/x.tm", "stak {\n}\n");
    assert_snapshot!(sandbox.orch("list"), @r"
    [stderr]
    error: unknown block `stak`
     --> line\nfeed\u{1b}[31m/x.tm:1:1
      |
    1 | stak {
      | ^^^^ not a block of this language
      |
      = help: did you mean `stack`?

    [exit status 3]
    ");
}

#[cfg(unix)]
#[test]
fn odd_names_can_be_referred_to() {
    let sandbox = Sandbox::new("");
    sandbox.write("/a b\n/stack.tm", "stack {\n}\n");
    sandbox.write("/a/stack.tm", "stack {\n  after = [\"/a b\\n\"]\n}\n");
    assert_snapshot!(sandbox.orch("list --order"), @r"
    a b\n
    a
    ");
}

#[cfg(target_os = "linux")]
#[test]
fn a_directory_whose_name_is_not_utf8_is_a_problem_if_it_holds_configuration() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt as _;
    let sandbox = Sandbox::layout("a");
    let odd = sandbox.path("/").join(OsStr::from_bytes(b"caf\xe9"));
    std::fs::create_dir(&odd).unwrap();
    std::fs::write(odd.join("data.txt"), "").unwrap();
    assert_eq!(sandbox.orch("list").to_string(), "a\n");
    std::fs::write(odd.join("stack.tm"), "stack {\n}\n").unwrap();
    assert_snapshot!(sandbox.orch("list"), @"
    [stderr]
    error: the path of `$ROOT/caf�` is not UTF-8
      = help: rename it, or put an empty file `.orchskip` into the directory

    [exit status 3]
    ");
    std::fs::write(odd.join(".orchskip"), "").unwrap();
    assert_eq!(sandbox.orch("list").to_string(), "a\n");
}

#[cfg(target_os = "linux")]
#[test]
fn arguments_that_are_not_utf8_reach_the_command() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt as _;
    let sandbox = Sandbox::layout("a");
    let mut command = sandbox.command("run -q -- printf %s");
    command.arg(OsStr::from_bytes(b"caf\xe9"));
    assert_eq!(command.output().unwrap().stdout, b"caf\xe9");
}

#[cfg(target_os = "linux")]
#[test]
fn a_host_variable_that_is_not_utf8_reaches_the_command() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt as _;
    let sandbox = Sandbox::layout("a");
    let mut command = sandbox.command("run -q -- sh -c 'printf %s \"$ODD\"'");
    command.env("ODD", OsStr::from_bytes(b"caf\xe9"));
    assert_eq!(command.output().unwrap().stdout, b"caf\xe9");
}

// What cannot be read.

#[cfg(unix)]
#[test]
fn a_link_to_nothing_or_to_a_directory_is_an_unreadable_file() {
    let sandbox = Sandbox::layout("a");
    sandbox.mkdir("/a/dir");
    sandbox.symlink("nowhere", "/a/dangling.tm");
    sandbox.symlink("dir", "/a/directory.tm");
    assert_snapshot!(sandbox.orch("list"), @"
    [stderr]
    error: failed to read `a/dangling.tm`
      caused by: No such file or directory (os error 2)
    error: failed to read `a/directory.tm`
      caused by: is a directory
    [exit status 5]
    ");
}

#[cfg(unix)]
#[test]
fn a_pipe_is_not_waited_for() {
    let sandbox = Sandbox::layout("a");
    let made = std::process::Command::new("mkfifo")
        .arg(sandbox.path("/a/pipe.tm"))
        .status();
    assert!(made.unwrap().success());
    assert_snapshot!(sandbox.orch("list"), @"
    [stderr]
    error: failed to read `a/pipe.tm`
      caused by: not a regular file
    [exit status 5]
    ");
}

#[test]
fn a_directory_with_the_name_of_a_configuration_file_is_a_directory() {
    let sandbox = Sandbox::layout("a.tm/b");
    assert_snapshot!(sandbox.orch("list"), @"a.tm/b");
}

#[cfg(unix)]
#[test]
fn links_that_form_a_loop_are_not_followed() {
    let sandbox = Sandbox::layout("a");
    sandbox.symlink("loop2", "/loop1");
    sandbox.symlink("loop1", "/loop2");
    sandbox.symlink("../a", "/a/again");
    assert_eq!(sandbox.orch("list").to_string(), "a\n");
    sandbox.symlink("self.tm", "/a/self.tm");
    let output = sandbox.orch("list");
    assert_eq!(output.code(), 5, "{output}");
    assert!(output.stderr.contains("`a/self.tm`"), "{output}");
}

#[cfg(unix)]
#[test]
fn what_may_not_be_read_is_named_all_at_once() {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt as _;
    use std::os::unix::process::CommandExt as _;
    use std::path::Path;
    let sandbox = Sandbox::layout(
        "
        a
        b/c
        d",
    );
    let set_mode = |path: &Path, mode| {
        fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    };
    let locked = [sandbox.path("/a/stack.tm"), sandbox.path("/b")];
    for path in &locked {
        set_mode(path, 0o000);
    }
    let mut command = sandbox.command("list");
    if fs::read(&locked[0]).is_ok() {
        // Root may read everything, so somebody else has to look.
        set_mode(sandbox.outside(), 0o755);
        command.uid(65_534).gid(65_534);
    }
    let output = command.output();
    for path in &locked {
        set_mode(path, 0o755);
    }
    let output = match output {
        Ok(output) => sandbox.output(&output),
        Err(error) => {
            skipped(format!(
                "root may read everything, and nobody else can start orch: {error}"
            ));
            return;
        }
    };
    assert_eq!((output.code(), &*output.stdout), (5, ""), "{output}");
    assert_snapshot!(output, @"
    [stderr]
    error: failed to read `a/stack.tm`
      caused by: Permission denied (os error 13)
    error: failed to read `b`
      caused by: Permission denied (os error 13)
    [exit status 5]
    ");
}

#[cfg(unix)]
#[test]
fn what_cannot_be_read_is_data_too() {
    let sandbox = Sandbox::layout("a");
    sandbox.symlink("nowhere", "/a/dangling.tm");
    let output = sandbox.orch("list --format json");
    assert_eq!(output.code(), 5);
    let document = output.data();
    assert_eq!(document["valid"], false);
    let error = document["errors"][0].as_str().unwrap();
    assert!(error.contains("a/dangling.tm"), "{error}");
}

#[cfg(unix)]
#[test]
fn wrong_configuration_weighs_more_than_an_unreadable_file() {
    let sandbox = Sandbox::layout("a");
    sandbox.symlink("nowhere", "/a/dangling.tm");
    sandbox.write("/b/stack.tm", "stack {\n  id = 1\n}\n");
    let output = sandbox.orch("list");
    assert_eq!(output.code(), 3);
    assert!(output.stderr.contains("a/dangling.tm"), "{output}");
    assert!(output.stderr.contains("`id` must be a string"), "{output}");
}

// Many problems.

#[test]
fn thousands_of_problems_are_reported_without_delay() {
    let sandbox = Sandbox::new("");
    let mut text = "stack {\n".to_owned();
    for n in 0..3000 {
        text += &format!("  unknown{n} = 1\n");
    }
    sandbox.write("/a/stack.tm", text + "}\n");
    let output = sandbox.orch("list");
    assert_eq!(output.code(), 3);
    assert_eq!(output.stderr.matches("error: ").count(), 3000);
}

#[test]
fn a_line_of_absurd_length_is_not_repeated_in_full() {
    let sandbox = Sandbox::new("");
    let text = format!(
        "stack {{\n  name = \"{}\" nonsense\n}}\n",
        "x".repeat(1_000_000)
    );
    sandbox.write("/a/stack.tm", text);
    let output = sandbox.orch("list");
    assert_eq!(output.code(), 3);
    assert!(
        output.stderr.len() < 10_000,
        "{} bytes",
        output.stderr.len()
    );
}

#[test]
fn a_number_beyond_reason_is_refused_and_not_expanded() {
    let sandbox = Sandbox::new("//- /a/stack.tm\nstack {\n  tags = [\"a\"][1e-999999999]\n}\n");
    let output = sandbox.orch("list");
    assert_eq!(output.code(), 3);
    assert!(output.stderr.contains("too large or too small"), "{output}");
}

#[test]
fn globals_that_multiply_each_others_errors_end() {
    let mut globals = String::from("globals {\n");
    for n in 0..28 {
        let next = n + 1;
        globals +=
            &format!("  g{n} = [true ? 1 : global.g{next}, true ? 1 : global.g{next}, null + 1]\n");
    }
    let root = "}\norch {\n  config {\n    run {\n      env {\n        X = global.g0\n      }\n    }\n  }\n}\n";
    let sandbox = Sandbox::new(&format!("//- /a/stack.tm\nstack {{}}\n{globals}{root}"));
    let output = sandbox.orch("env");
    assert_eq!(output.code(), 3, "{output}");
}

#[cfg(unix)]
#[test]
fn a_pipe_in_the_place_of_a_repository_is_not_waited_for() {
    let sandbox = Sandbox::layout("a");
    let status = std::process::Command::new("mkfifo")
        .arg(sandbox.path("/a/.git"))
        .status();
    assert!(status.unwrap().success());
    assert_eq!(sandbox.orch_in("/a", "list").stdout, ".\n");
}
