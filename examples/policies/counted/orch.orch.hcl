orch {
  root = true
}

policy "trigger" "counted" {
  file = "counted.rego"
}
