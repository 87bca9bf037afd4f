# Imported by the environments that are audited.
terramate {
  config {
    run {
      env {
        AUDIT_LOG = "audit/${terramate.stack.path.basename}.log"
      }
    }
  }
}
