# Stacks that call versions of a module, and a policy that says which of them follow when a new version is
# released. README.md walks through it.

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
