# Two environments with the same stacks. It shows settings that directories hand down (`globals`,
# `run.env`), a shared file that is imported, and selection by tags.

orch {
  root = true

  config {
    run {
      env {
        APP_REGION = global.region
        APP_STACK  = "${global.environment}-${orch.stack.name}"
      }
    }
  }
}

globals {
  region = "eu-central-1"
}
