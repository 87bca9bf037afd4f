orch {
  root = true
}

policy "trigger" "states" {
  file = "states.rego"
}
