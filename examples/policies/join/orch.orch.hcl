orch {
  root = true
}

policy "trigger" "join" {
  file = "join.rego"
}
