# Two Terraform stacks, one of which needs the other to be applied first. Nothing here needs an
# account or the network: `terraform_data` is built into Terraform.
#
#   orch run terraform init
#   orch run terraform apply
#   orch run --reverse terraform destroy

orch {
  root = true
}
