# Lifecycle rules, with a driver written in shell that needs no cloud: what a stack makes is a file in
# the directory `$LIVE`.
# README.md goes through the rules one by one.

orch {
  root = true

  config {
    driver = "files"

    state {
      project = "lifecycle"
    }

    run {
      env {
        BUILD = tm_try(env.BUILD_NUMBER, "none")
      }
    }

    # Neither documentation nor the number of a build is a reason to apply a stack.
    lifecycle {
      ignore_changes = ["**/*.md", env.BUILD]
    }
  }
}

driver "files" {
  plan    = ["sh", "${orch.root.path.fs.absolute}/files.sh", "plan"]
  apply   = ["sh", "${orch.root.path.fs.absolute}/files.sh", "apply"]
  destroy = ["sh", "${orch.root.path.fs.absolute}/files.sh", "destroy"]
  outputs = ["sh", "${orch.root.path.fs.absolute}/files.sh", "outputs"]

  # Each generation of a stack has a state of its own: here that is the file.
  backend = "file ${orch.stack.name} ${orch.stack.generation}"
}
