orch {
  root = true
}

policy "trigger" "clients" {
  file = "clients.rego"
}
