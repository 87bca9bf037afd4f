# A small shop: a network, a database in it, two services, and monitoring on top.
# It shows nesting, `after`, `before`, tags and `wants`.

orch {
  # This directory is the root of a project, although it lies in a larger repository.
  root = true

  config {
    run {
      env {
        # Every command in every stack sees these. They are expressions.
        DEPLOY_TARGET = "shop/${orch.stack.path.relative}"
      }
    }
  }
}
