orch {
  root = true
}

policy "trigger" "split" {
  file   = "split.rego"
  attach = ["/network"]
}

policy "trigger" "join" {
  file   = "join.rego"
  attach = ["/database", "/queue"]
}
