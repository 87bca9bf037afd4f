module "vpc" {
  source  = "acme/vpc/aws"
  version = ">= 1.2, < 1.4"
}
