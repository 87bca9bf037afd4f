orch {
  root = true
}

policy "trigger" "regions" {
  file = "regions.rego"
}
