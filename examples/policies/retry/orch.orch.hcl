orch {
  root = true
}

policy "trigger" "retry" {
  file = "retry.rego"
}
