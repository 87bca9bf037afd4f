module "platform" {
  source = "../modules/platform"
}
