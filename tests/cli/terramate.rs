//! The worked examples of Terramate's behaviour. Most mean the same to `orch`. Where `orch` differs
//! on purpose, the case says why:
//!
//! - *lowest path*: among stacks that may run the lowest path goes first, where Terramate goes in
//!   layers, or in the order in which stacks became free.
//! - *contains*: a reference to a directory that contains the declaring stack means the stack at it.
//! - *all stacks*: constraints are built over all stacks and projected on the selection.

use crate::support::Sandbox;

struct Example {
    number: u32,
    layout: &'static str,
    directory: &'static str,
    flags: &'static str,
    /// The stacks in the order of a run; or what is said and nothing runs.
    runs: Result<&'static [&'static str], &'static str>,
    /// What is said on stderr although the run goes ahead.
    warns: &'static str,
}

const fn example(
    number: u32,
    layout: &'static str,
    runs: Result<&'static [&'static str], &'static str>,
) -> Example {
    Example {
        number,
        layout,
        directory: "/",
        flags: "",
        runs,
        warns: "",
    }
}

impl Example {
    const fn at(mut self, directory: &'static str) -> Self {
        self.directory = directory;
        self
    }

    const fn with(mut self, flags: &'static str) -> Self {
        self.flags = flags;
        self
    }

    const fn warning(mut self, warns: &'static str) -> Self {
        self.warns = warns;
        self
    }
}

const WANTS_IN_A_CIRCLE: &str = "
    a wants /b /c
    b wants /d /e
    c
    d
    e wants /a /z
    z";

#[rustfmt::skip] // a table
const EXAMPLES: &[Example] = &[
    example(1, "1\n2\n3\nbatatinha\nboom\nfrita", Ok(&["/1", "/2", "/3", "/batatinha", "/boom", "/frita"])),
    // Lowest path: Terramate goes breadth first.
    example(2, "stacks\nstacks/A\nstacks/B\nstacks/A/AA\nstacks/B/BA\nstacks/A/AA/AAA",
        Ok(&["/stacks", "/stacks/A", "/stacks/A/AA", "/stacks/A/AA/AAA", "/stacks/B", "/stacks/B/BA"])),
    // Lowest path: Terramate has a, z, b, d, c.
    example(3, "a\nb after /a\nc after /b\nd after /z\nz", Ok(&["/a", "/b", "/c", "/z", "/d"])),
    // Lowest path: Terramate has d, f, g, h, b, c, a.
    example(4, "a after /b /c\nb after /d /f\nc after /g /h\nd\nf\ng\nh",
        Ok(&["/d", "/f", "/b", "/g", "/h", "/c", "/a"])),
    // Lowest path: Terramate has b, c, d, a, z.
    example(5, "a after /c\nb before /a\nc\nd\nz after /b /c /d", Ok(&["/b", "/c", "/a", "/d", "/z"])),
    example(6, "other [other]\nparent\nparent/child before tag:other\nparent/child/grand-child",
        Ok(&["/parent", "/parent/child", "/other", "/parent/child/grand-child"])),
    example(7, "dir/s1\ndir/s2\ndir/s3\nstack after /dir", Ok(&["/dir/s1", "/dir/s2", "/dir/s3", "/stack"])),
    example(8, "dir/s1\ndir/s2\ndir/s3\nstack before /dir", Ok(&["/stack", "/dir/s1", "/dir/s2", "/dir/s3"])),
    // Contains: Terramate finds a cycle in what is true already.
    example(9, "stacks\nstacks/child after /stacks", Ok(&["/stacks", "/stacks/child"])),
    example(10, "stacks after /stacks/child\nstacks/child", Err("stacks wait for each other in a cycle")),
    // Terramate calls it a cycle; it is a reference to nothing but itself.
    example(11, "a after .", Err("names only the stack itself")),
    example(12, "a after nonexisting", Ok(&["/a"])).warning("`nonexisting` in `after` matches no stack"),
    // Terramate is silent about tags that nothing carries.
    example(13, "stack1\nstack2\nstack3 before tag:unknown", Ok(&["/stack1", "/stack2", "/stack3"]))
        .warning("`tag:unknown` in `before` matches no stack"),
    example(14, "a after tag:_invalid", Err("`tag:_invalid` is not a tag filter")),
    example(15, "p\nstacks/a after /stacks/b /p\nstacks/b before /p", Ok(&["/stacks/b", "/stacks/a"])).at("/stacks"),
    example(16, "a [dev]\nb [prod] after /a", Ok(&["/b"])).with("--tags prod"),
    example(17, "a [a b c]\nb [a b]", Ok(&["/b"])).with("--tags a --tags b --no-tags c"),
    // Lowest path: Terramate has both k8s-infra before both apps.
    example(18, "
        app1 after tag:k8s:prod
        app2 after tag:k8s:dev
        infra1 [infra prod]
        infra2 [infra prod]
        infra3 [infra dev]
        k8s-infra1 [k8s prod] after tag:infra:prod
        k8s-infra2 [k8s dev] after tag:infra:dev",
        Ok(&["/infra1", "/infra2", "/infra3", "/k8s-infra1", "/app1", "/k8s-infra2", "/app2"])),
    example(19, "a wants /b\nb", Ok(&["/a", "/b"])).at("/a"),
    example(19, "a wants /b\nb", Ok(&["/b"])).at("/b"),
    example(20, "a\nb wants /a", Ok(&["/a", "/b"])).at("/b"),
    // Terramate warns of the circle in `wants`, which is harmless.
    example(21, WANTS_IN_A_CIRCLE, Ok(&["/a", "/b", "/c", "/d", "/e", "/z"])).at("/b"),
    // Lowest path: Terramate has b, c, d, e, z, a.
    example(22, "
        a wants /b /c after /b
        b wants /d /e
        c
        d before /a
        e wants /a /z
        z",
        Ok(&["/b", "/c", "/d", "/a", "/e", "/z"])).at("/b"),
    // Lowest path: Terramate has a, b, c, a/sub.
    example(23, "a wants tag:prod\na/sub\nb [prod]\nc [prod]", Ok(&["/a", "/a/sub", "/b", "/c"])).at("/a"),
    example(24, "all/1\nall/2\nstack wanted_by /all", Ok(&["/all/2", "/stack"])).at("/all/2"),
    example(25, "other\nstack [prod] wanted_by /other", Ok(&[])).at("/other").with("--tags prod")
        .warning("passes the tag filters"),
    // Lowest path: Terramate has a, b, z, c.
    example(26, "a\nb\nc after /b\nz after /a", Ok(&["/a", "/b", "/c", "/z"])),
    example(27, "a [x] after /m\nm after /z\nz [x]", Ok(&["/z", "/a"])).with("--tags x"),
    // All stacks: Terramate loses the constraint, since only m knows of it.
    example(28, "a [x]\nm after /z before /a\nz [x]", Ok(&["/z", "/a"])).with("--tags x"),
    // Lowest path, and what is not selected has no say: Terramate has b, a.
    example(29, "a [x] after /q\nb [x]\nq", Ok(&["/a", "/b"])).with("--tags x"),
    // A cycle that does not touch the selection is a warning: Terramate refuses.
    example(30, "a [x] after /u\nu after /v\nv after /u", Ok(&["/a"])).with("--tags x")
        .warning("warning: stacks wait for each other in a cycle"),
    example(32, "test\ntests", Ok(&["/test"])).at("/test"),
];

#[test]
fn terramates_examples_mean_the_same_except_on_purpose() {
    let mut wrong = String::new();
    for example in EXAMPLES {
        let sandbox = Sandbox::layout(example.layout);
        let arguments = format!("run --dry-run {} git", example.flags);
        let output = sandbox.orch_in(example.directory, &arguments);
        let ran: Vec<&str> = output
            .stdout
            .lines()
            .map(|line| line.trim_end_matches(": git"))
            .collect();
        let is_right = match example.runs {
            Ok(expected) => {
                let says = match example.warns {
                    "" => output.stderr.is_empty(),
                    warning => output.stderr.contains(warning),
                };
                output.code() == 0 && ran == expected && says
            }
            Err(says) => output.code() == 3 && ran.is_empty() && output.stderr.contains(says),
        };
        if !is_right {
            let (number, runs) = (example.number, example.runs);
            wrong += &format!("example {number} should be {runs:?}:\n{output}\n");
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

/// Example 31: each stack needs the results of those before it, so a wrong order gives a wrong number.
#[cfg(unix)]
#[test]
fn fibonacci_numbers_come_out_right() {
    // From the end of the alphabet, so that path order alone would be wrong.
    let names = ["z", "y", "x", "w", "v", "u", "t", "s", "r", "q", "p"];
    let mut layout = "z\ny\n".to_owned();
    for three in names.windows(3) {
        layout += &format!("{} after /{} /{}\n", three[2], three[1], three[0]);
    }
    let sandbox = Sandbox::layout(&layout);
    for three in names.windows(3) {
        sandbox.write(
            &format!("/{}/needs", three[2]),
            format!("../{} ../{}", three[0], three[1]),
        );
    }
    let script = "if [ -e needs ]; then read a b < needs; n=$(($(cat $a/n) + $(cat $b/n))); else n=1; fi; echo $n > n";
    let output = sandbox.orch(&format!("run --quiet -- sh -c '{script}'"));
    assert_eq!(output.to_string(), "");
    assert_eq!(sandbox.read("/p/n"), "89\n");
}
