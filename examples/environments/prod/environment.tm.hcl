globals {
  environment = "prod"
  region      = "eu-west-1" # overrides the one above
}

import {
  source = "/modules/audited.tm.hcl"
}
