orch {
  root = true
}

policy "trigger" "list" {
  file   = "list.rego"
  attach = ["/network"]
}
