stack {
  for_each = { dev = "eu-west-1", prod = "eu-north-1" }
  name     = "network ${each.key}"
  tags     = [each.key]
}

orch {
  config {
    run {
      env {
        TF_WORKSPACE  = each.key
        TF_DATA_DIR   = ".terraform/${each.key}"
        TF_VAR_region = each.value
      }
    }
  }
}
