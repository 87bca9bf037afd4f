# Nothing at or below this directory is destroyed, not even by a commit that deletes these lines.
orch {
  config {
    lifecycle {
      prevent_destroy = true

      precondition {
        condition     = tm_length(global.owner) > 0
        error_message = "whatever is in prod needs an owner"
      }
    }
  }
}

globals {
  owner = "team-data"
}
