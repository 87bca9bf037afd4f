use super::{APPROVED, acts, applied_of, done, fails, hook, prepared, remove, taken};
use crate::support::Repository;

/// `/app` has an input of `/net`, and writes it to the file `seen`.
fn sharing() -> Repository {
    let sandbox = prepared(&[("/app", ""), ("/net", "id = \"net\"")]);
    sandbox.write(
        "/sharing.tm",
        "sharing_backend \"b\" {\n  type = terraform\n  filename = \"f\"\n  command = [\"sh\", \"../tool\", \"outputs\"]\n}\n",
    );
    sandbox.write(
        "/app/inputs.tm",
        "input \"id\" {\n  backend = \"b\"\n  from_stack_id = \"net\"\n  value = outputs.id\n  mock = \"mocked\"\n}\n",
    );
    for step in ["plan", "destroy"] {
        let script = format!("echo {step} $TF_VAR_id >> \"$outside/seen\"\n");
        hook(&sandbox, step, "app", &script);
    }
    let repository = applied_of(sandbox);
    taken(&repository, "seen");
    repository
}

#[test]
fn removal_passes_inputs_on() {
    for (removed, destroyed) in [
        ("app", &["destroy /app"][..]),
        ("app net", &["destroy /app", "destroy /net"]),
    ] {
        let repository = sharing();
        remove(&repository, removed);
        done(&repository, &format!("apply {APPROVED}"));
        assert_eq!(acts(&repository), destroyed);
        let mut seen = taken(&repository, "seen");
        seen.dedup();
        assert_eq!(seen, ["plan \"1\"", "destroy \"1\""]);
    }
}

#[test]
fn removal_finds_a_source_that_has_moved() {
    let repository = sharing();
    repository.git("mv net lan");
    repository.write(
        "/moved.orch.hcl",
        "moved {\n  from = \"/net\"\n  to = \"/lan\"\n}\nremoved {\n  from = \"/app\"\n}\n",
    );
    repository.write("/lan/object", "net");
    repository.git("add -A");
    remove(&repository, "app");
    done(&repository, &format!("apply {APPROVED}"));
    assert!(taken(&repository, "seen").contains(&"destroy \"1\"".to_owned()));
}

#[test]
fn removal_without_an_input_fails() {
    let repository = sharing();
    remove(&repository, "app");
    hook(&repository, "outputs", "net", "exit 1");
    let why = "the input `id` has no value: the outputs of `/net` cannot be used";
    fails(&repository, &format!("apply {APPROVED}"), 1, why);
    assert_eq!(acts(&repository), [""; 0]);
}
