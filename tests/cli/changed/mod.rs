//! Which changes of files count, and which stacks they concern.

mod computed; // what configuration computes
mod damaged; // a repository that cannot be read
mod flags; // what `--changed` says, and the flags that go with it
mod meaning; // configuration files count by what they say
mod stacks; // which stacks a file concerns, and odd names
mod states; // files in each state that git knows
mod submodules; // repositories in the repository
