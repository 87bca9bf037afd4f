globals {
  environment = "staging"
}
