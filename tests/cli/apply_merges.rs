//! Plans of a pull request that are applied in another clone, after the merge.

use crate::support::{BucketServer, Checkout, Dialect, Output, Repositories};

/// A project of two stacks and one beside them, which are planned by comparing a file with what is live, and
/// applied by copying it there.
struct Project {
    repositories: Repositories,
    server: Option<BucketServer>,
}

const STACKS: [(&str, &str); 3] = [
    ("a", ""),
    ("b", "after = [\"/a\"]\n  watch = [\"/shared.txt\"]"),
    ("c", ""),
];

impl Project {
    fn new(with_state: bool) -> Self {
        let repositories = Repositories::new();
        let server = with_state.then(|| BucketServer::new(Dialect::S3));
        let author = repositories.author();
        let live = repositories.at("live").path("");
        std::fs::create_dir(&live).unwrap();
        let live = live.to_str().unwrap().trim_end_matches('/').to_owned();
        author.write(
            "driver.orch.hcl",
            &format!(
                r#"driver "copy" {{
  plan  = ["sh", "-c", "cmp -s value {live}/$ORCH_STACK_NAME || exit 2"]
  apply = ["sh", "-c", "cp value {live}/$ORCH_STACK_NAME"]
}}
orch {{
  config {{
    driver = "copy"
  }}
}}
"#
            ),
        );
        if let Some(server) = &server {
            let backend = server.backend();
            let state = format!(
                "orch {{\n  config {{\n    state {{\n      project = \"acme\"\n{backend}\n    }}\n  }}\n}}\n"
            );
            author.write("state.orch.hcl", &state);
        }
        author.git("rm -rq d");
        author.write("shared.txt", "one\n");
        for (stack, attributes) in STACKS {
            author.write(
                &format!("{stack}/stack.tm"),
                &format!("stack {{\n  {attributes}\n}}\n"),
            );
            author.write(&format!("{stack}/value"), "1\n");
        }
        author.commit("stacks", "");
        let project = Project {
            repositories,
            server,
        };
        let author = project.repositories.author();
        if with_state {
            assert_eq!(project.orch(&author, "state init").code(), 0);
        }
        let applied = project.orch(&author, "apply --auto-approve");
        assert_eq!(applied.code(), 0, "{applied:?}");
        project
    }

    fn orch(&self, checkout: &Checkout<'_>, arguments: &str) -> Output {
        let credentials = self.server.as_ref().map(BucketServer::credentials);
        let variables = credentials.as_ref().map_or(&[][..], |it| &it[..]);
        checkout.orch_in_ci(arguments, variables)
    }

    /// The author changes files on a branch.
    fn change(&self, branch: &str, files: &[(&str, &str)]) {
        let author = self.repositories.author();
        author.git(&format!("checkout -q -b {branch} main"));
        for (file, text) in files {
            author.write(file, text);
        }
        author.commit(branch, "");
        author.git("checkout -q main");
    }

    /// Plans in a clone what the merge of a branch into `main` would be, as CI does for a pull request.
    fn plan(&self, branch: &str) {
        let author = self.repositories.author();
        author.git("checkout -q -b merged main");
        author.merge("merged", branch);
        self.repositories.publish();
        self.repositories.at("").git("clone -q -b merged $URL ci");
        author.git("checkout -q main");
        let planned = self.orch(&self.repositories.at("ci"), "plan -o ../plan");
        assert_eq!(planned.code(), 0, "{planned:?}");
        assert!(planned.stdout.contains("/b "), "{planned:?}");
    }

    /// Merges a branch as one commit.
    fn squash(&self, branch: &str) {
        let author = self.repositories.author();
        author.git(&format!("merge -q --squash {branch}"));
        author.commit(&format!("{branch}-squashed"), "");
    }

    /// Applies the plan in a new clone of `main`, at another path.
    fn apply(&self) -> Output {
        self.repositories.publish();
        self.repositories.at("").git("clone -q $URL other/machine");
        let checkout = self.repositories.at("other/machine");
        self.orch(&checkout, "apply ../../plan")
    }

    fn live(&self, stack: &str) -> String {
        std::fs::read_to_string(self.repositories.at("live").path(stack)).unwrap()
    }
}

/// A project with a plan of a change of `/b`, and of nothing else.
fn planned(with_state: bool) -> Project {
    let project = Project::new(with_state);
    project.change("pr", &[("b/value", "2\n")]);
    project.plan("pr");
    project
}

#[test]
fn a_plan_of_a_merge_is_applied_after_a_squash_in_another_clone() {
    for with_state in [false, true] {
        let project = planned(with_state);
        project.squash("pr");
        let applied = project.apply();
        assert_eq!(applied.code(), 0, "{applied:?}");
        assert_eq!(project.live("b"), "2\n");
        let checkout = project.repositories.at("other/machine");
        let again = project.orch(&checkout, "plan --full --detailed-exitcode");
        assert_eq!(again.code(), 0, "{again:?}");
    }
}

#[test]
fn a_plan_is_applied_after_a_merge_of_something_else() {
    for with_state in [false, true] {
        let project = planned(with_state);
        project.change("else", &[("c/value", "2\n"), ("notes.txt", "more\n")]);
        project.squash("else");
        project.squash("pr");
        let applied = project.apply();
        assert_eq!(applied.code(), 0, "{applied:?}");
        assert_eq!((&*project.live("b"), &*project.live("c")), ("2\n", "1\n"));
    }
}

#[test]
fn a_plan_is_refused_after_a_merge_that_changes_what_its_stack_watches() {
    for with_state in [false, true] {
        let project = planned(with_state);
        project.change("else", &[("shared.txt", "two\n")]);
        project.squash("else");
        project.squash("pr");
        let refused = project.apply();
        assert_eq!(refused.code(), 4, "{refused:?}");
        let named = "/b: shared.txt differs";
        assert!(refused.stderr.contains(named), "{refused:?}");
        assert_eq!(project.live("b"), "1\n");
    }
}

#[test]
fn a_plan_is_refused_after_a_stack_was_applied_that_its_stack_runs_after() {
    let project = planned(true);
    project.change("else", &[("a/value", "2\n")]);
    project.squash("else");
    let applied = project.orch(
        &project.repositories.author(),
        "apply --auto-approve --match a",
    );
    assert_eq!(applied.code(), 0, "{applied:?}");
    project.squash("pr");
    let refused = project.apply();
    assert_eq!(refused.code(), 4, "{refused:?}");
    let named = "/b: it runs after /a, whose record has changed";
    assert!(refused.stderr.contains(named), "{refused:?}");
    assert_eq!(project.live("b"), "1\n");
}

#[test]
fn a_plan_is_applied_after_a_stack_was_applied_that_has_nothing_to_do_with_it() {
    let project = planned(true);
    project.change("else", &[("c/value", "2\n")]);
    project.squash("else");
    let applied = project.orch(&project.repositories.author(), "apply --auto-approve");
    assert_eq!(applied.code(), 0, "{applied:?}");
    project.squash("pr");
    let applied = project.apply();
    assert_eq!(applied.code(), 0, "{applied:?}");
    assert_eq!((&*project.live("b"), &*project.live("c")), ("2\n", "2\n"));
}
