//! Lifecycle rules, and blocks that give stacks up or move them.

mod blocks; // what `moved` and `removed` blocks may say
mod checked; // when conditions are checked, and how they are told
mod conditions; // what must hold before something is done
mod declared; // what `lifecycle` blocks may say, and where
mod example; // the bundled example
mod generation_walks; // random histories of that
mod generations; // what is made anew before the old one is destroyed
mod hostile; // what is written to mislead whoever reads a message
mod ignored; // inputs whose changes bring about nothing, and what is no input
mod ignored_law; // random lists of those
mod late_replacements; // replacements that only an apply finds out about
mod linked; // rules in files that are links, or in other repositories
mod moved; // what is recorded follows its stacks
mod old_generations; // who uses old generations, and when one is destroyed
mod outputs; // conditions about the outputs of stacks
mod protected; // what is protected is not destroyed, whoever tries
mod protected_resources; // protected resources inside stacks that are kept
mod removed; // stacks that were given up: destroyed or left, with evidence
mod secrets; // conditions about sensitive outputs
mod terraform_generations; // generations of real Terraform
mod triggers; // what replaces a stack when others change
