//! Which changes count.

use insta::assert_snapshot;

use super::{env, globals};
use crate::support::Repository;

fn simple() -> Repository {
    let sandbox = Repository::prepare("a");
    sandbox.write("/env.tm", env("A = \"${global.a} ${global.b}\""));
    sandbox.write("/globals.tm", globals("a = \"1\""));
    sandbox.write("/more.tm", globals("b = \"1\""));
    Repository::of(sandbox)
}

#[test]
fn changed_values_count_uncommitted_changes_unless_switched_off() {
    let repository = simple();
    repository.write("/globals.tm", globals("a = \"2\""));
    assert_snapshot!(repository.list(""), @"a  # changed: globals.tm (uncommitted), environment variable A (env.tm:5), global.a (globals.tm:2); at or below /");
    assert_snapshot!(repository.list("--disable-change-detection git-uncommitted"), @"
    [stderr]
    note: no stack has changed since 3fa9392; 1 file differs that does not count
    ");
    // The value differs, but not because of a change that counts.
    repository.write("/new.tm", globals("c = 1"));
    assert_snapshot!(repository.list("--disable-change-detection git-uncommitted"), @"
    [stderr]
    note: no stack has changed since 3fa9392; 1 file differs that does not count
    ");
    repository.remove("/new.tm");
    repository.write("/x.tm", env("B = \"new\""));
    assert_snapshot!(repository.list("--disable-change-detection git-uncommitted"), @"a  # changed: x.tm (untracked), environment variable B (x.tm:5); at or below /");
    assert_snapshot!(repository.list("--disable-change-detection git-uncommitted,git-untracked"), @"
    [stderr]
    note: no stack has changed since 3fa9392; 2 files differ that do not count
    ");
}

#[test]
fn changed_values_skip_ignored_files() {
    let sandbox = Repository::prepare("a");
    sandbox.write("/env.tm", env("A = \"${global.a} ${global.b}\""));
    sandbox.write("/globals.tm", globals("a = \"1\""));
    sandbox.write("/more.tm", globals("b = \"1\""));
    let ignore =
        "orch {\n  config {\n    change_detection {\n      ignore = [\"more.tm\"]\n    }\n  }\n}\n";
    sandbox.write("/ignore.orch.hcl", ignore);
    let repository = Repository::of(sandbox);
    repository.write("/more.tm", globals("b = \"2\""));
    assert_snapshot!(repository.list(""), @"
    [stderr]
    note: no stack has changed since 0c0ad9d; 1 file differs that does not count
    ");
    // Another change, which makes no difference either.
    repository.write("/globals.tm", globals("a = \"1\"\n  c = 1"));
    assert_snapshot!(repository.list(""), @"
    [stderr]
    note: no stack has changed since 0c0ad9d; 1 file differs that does not count
    ");
    assert_snapshot!(repository.orch("why a --changed --base base"), @"
    /a is not selected
      has not changed since 0c0ad9d

    its inputs, 0 of 4 changed since 0c0ad9d
      /more.tm, environment variable A (env.tm:5), global.b (more.tm:2)
        differs, but does not count: more.tm (uncommitted), ignored by `more.tm` (ignore.orch.hcl:4)
      /a, its own directory
      /env.tm, environment variable A (env.tm:5)
      /globals.tm, environment variable A (env.tm:5), global.a (globals.tm:2)

    nothing runs before it

    nothing runs after it

    what would select it
      a change of one of its inputs, or `orch trigger /a`
    [stderr]
    base 0c0ad9d: --base base, which is HEAD itself
    ");
}

#[test]
fn changed_values_skip_files_ignored_by_git() {
    let sandbox = Repository::prepare("a");
    sandbox.write("/.gitignore", "local.tm\n");
    sandbox.write("/env.tm", env("A = tm_try(global.local, \"\")"));
    let repository = Repository::of(sandbox);
    repository.write("/local.tm", globals("local = \"x\""));
    repository.write("/other.tm", globals("c = 1"));
    assert_snapshot!(repository.list(""), @"
    [stderr]
    note: no stack has changed since ec068a9
    ");
}

#[test]
fn changed_values_are_switched_off_by_a_setting() {
    let repository = simple();
    repository.write("/globals.tm", globals("a = \"2\""));
    let setting = |value: &str| {
        let text = format!(
            "orch {{\n  config {{\n    change_detection {{\n      environment = {value}\n    }}\n  }}\n}}\n"
        );
        repository.write("/setting.orch.hcl", text);
    };
    setting("\"off\"");
    assert_snapshot!(repository.list(""), @"
    [stderr]
    note: no stack has changed since 3fa9392
    ");
    assert_snapshot!(repository.orch("why a --changed --base base"), @"
    /a is not selected
      has not changed since 3fa9392

    its inputs, 0 of 1 changed since 3fa9392
      /a, its own directory

    nothing runs before it

    nothing runs after it

    what would select it
      a change of one of its inputs, or `orch trigger /a`
    [stderr]
    base 3fa9392: --base base, which is HEAD itself
    ");
    setting("\"on\"");
    assert_snapshot!(repository.list(""), @"a  # changed: globals.tm (uncommitted), environment variable A (env.tm:5), global.a (globals.tm:2); at or below /");
}

#[test]
fn changed_values_setting_belongs_in_the_root() {
    let repository = simple();
    repository.write(
        "/a/setting.orch.hcl",
        "orch {\n  config {\n    change_detection {\n      environment = \"off\"\n    }\n  }\n}\n",
    );
    assert_snapshot!(repository.orch("validate"), @r#"
    [stderr]
    error: this setting applies only in the project root, and is ignored here
     --> a/setting.orch.hcl:4:7
      |
    4 |       environment = "off"
      |       ^^^^^^^^^^^ ignored
      |
      = help: move it to the project root; only `env`, `lets`, `timeout`, `retry` and the exit codes of `config.run`, `config.driver`, `config.lifecycle` and `config.change_detection.ignore` may be here

    [exit status 3]
    "#);
}

#[test]
fn changed_prefers_own_files_as_the_reason() {
    let repository = simple();
    repository.write("/globals.tm", globals("a = \"2\""));
    repository.write("/a/main.tf", "# changed\n");
    assert_snapshot!(repository.list(""), @"a  # changed: a/main.tf (uncommitted); at or below /");
}

#[cfg(unix)]
#[test]
fn changed_counts_the_target_of_a_linked_configuration_file() {
    let sandbox = Repository::prepare("a");
    sandbox.write("/env.tm", env("A = global.a"));
    sandbox.write("/shared/globals", globals("a = \"1\""));
    sandbox.symlink("shared/globals", "/globals.tm");
    let repository = Repository::of(sandbox);
    repository.write("/shared/globals", globals("a = \"2\""));
    assert_snapshot!(repository.list(""), @"a  # changed: shared/globals (uncommitted), environment variable A (env.tm:5), global.a (globals.tm:2); at or below /");
}
