# Terraform workspaces: each directory is one stack for each environment. Nothing here needs an account
# or the network: `terraform_data` is built into Terraform.
#
#   orch run -j 4 -- terraform init
#   orch run -j 4 -- terraform apply -auto-approve
#   orch run --tags dev -- terraform plan

orch {
  root = true
}
