stack {
  for_each = ["dev", "prod"]
  name     = "app ${each.key}"
  tags     = [each.key]
  after    = ["/network[\"${each.key}\"]"]
}

orch {
  config {
    run {
      env {
        TF_WORKSPACE = each.key
        TF_DATA_DIR  = ".terraform/${each.key}"
      }
    }
  }
}
