//! Protection by rules in files that are links, or in other repositories.

use crate::removals::{done, entry, fails, prepared, remove};
use crate::support::{Repository, Sandbox};

fn rules(value: bool) -> String {
    format!(
        "orch {{\n  config {{\n    lifecycle {{\n      prevent_destroy = {value}\n    }}\n  }}\n}}\n"
    )
}

const REFUSED: &str = "the plan would destroy `/prod/db`, which is protected";

/// A project whose rules are in a file to which a link leads.
fn linked() -> Repository {
    let sandbox = prepared(&[("/prod/db", "")]);
    sandbox.write("/shared/rules.orch.hcl", rules(true));
    let link = sandbox.path("/prod/rules.orch.hcl");
    std::os::unix::fs::symlink("../shared/rules.orch.hcl", link).unwrap();
    applied(sandbox)
}

fn applied(sandbox: Sandbox) -> Repository {
    let repository = Repository::of(sandbox);
    done(&repository, "state init");
    done(&repository, "apply --auto-approve");
    repository
}

#[test]
fn prevent_destroy_behind_a_link_is_recorded() {
    let repository = linked();
    let rule = entry(&repository, "/prod/db")["lifecycle"]["prevent_destroy"].clone();
    assert_eq!(rule["value"], true);
    assert_eq!(rule["file"], "prod/rules.orch.hcl");
    remove(&repository, "prod shared");
    fails(&repository, "plan", 4, REFUSED);
}

#[test]
fn prevent_destroy_behind_a_link_ends_when_applied() {
    let repository = linked();
    let plan = "plan --destroy";
    repository.write("/shared/rules.orch.hcl", rules(false));
    fails(&repository, plan, 4, REFUSED);
    repository.git("checkout -q shared");
    std::fs::remove_file(repository.path("/prod/rules.orch.hcl")).unwrap();
    fails(&repository, plan, 4, REFUSED);
    // A link that leads elsewhere.
    repository.write("/shared/other.txt", rules(false));
    let link = repository.path("/prod/rules.orch.hcl");
    std::os::unix::fs::symlink("../shared/other.txt", link).unwrap();
    fails(&repository, plan, 4, REFUSED);
    repository.commit();
    // Links are not followed in a commit, so the record has to say it too.
    fails(&repository, plan, 4, REFUSED);
    done(&repository, "apply --auto-approve");
    done(&repository, plan);
}

#[test]
fn run_respects_recorded_protection() {
    let repository = linked();
    repository.write("/shared/rules.orch.hcl", rules(false));
    repository.commit();
    let refused = "the command would destroy `/prod/db`, which is protected";
    fails(&repository, "run -X --record=destroy -- true", 4, refused);
    assert!(entry(&repository, "/prod/db").is_object());
    done(&repository, "apply --auto-approve");
    done(&repository, "run -X --record=destroy -- true");
}

#[test]
fn prevent_destroy_in_a_submodule_ends_when_applied() {
    let sandbox = prepared(&[]);
    let library = sandbox.outside().join("library");
    std::fs::create_dir_all(library.join("db")).unwrap();
    let block = |value: bool| {
        format!("stack {{\n  lifecycle {{\n    prevent_destroy = {value}\n  }}\n}}\n")
    };
    std::fs::write(library.join("db/stack.orch.hcl"), block(true)).unwrap();
    std::fs::write(library.join("db/want"), "1").unwrap();
    let repository = Repository::of(sandbox);
    repository.git_in(&library, "init -q");
    repository.git_in(&library, "add -A");
    repository.git_in(&library, "commit -q -m library");
    let place = library.display();
    repository.git(&format!(
        "-c protocol.file.allow=always submodule add -q {place} sub"
    ));
    repository.commit();
    done(&repository, "state init");
    done(&repository, "apply --auto-approve");
    let refused = "the plan would destroy `/sub/db`, which is protected";
    fails(&repository, "plan --destroy", 4, refused);
    repository.write("/sub/db/stack.orch.hcl", block(false));
    fails(&repository, "plan --destroy", 4, refused);
    let sub = repository.path("/sub");
    repository.git_in(&sub, "commit -q -a -m lift");
    fails(&repository, "plan --destroy", 4, refused);
    repository.commit();
    // What HEAD does not hold itself has to be recorded.
    fails(&repository, "plan --destroy", 4, refused);
    done(&repository, "apply --auto-approve");
    done(&repository, "plan --destroy");
}
