# Stacks that call a module by its version, and a policy that says which of them follow when a new version
# is released. README.md goes through it.

orch {
  root = true
}

module "vpc" {
  source = "acme/vpc/aws"
  tag    = "modules/vpc/v*"
}

policy "trigger" "consumers" {
  file   = "policies/consumers.rego"
  attach = ["module:vpc"]
}
