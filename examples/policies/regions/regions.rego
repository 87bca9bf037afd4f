package regions

import rego.v1

number(stack) := to_number(trim_prefix(label, "region:")) if {
	some label in stack.labels
	startswith(label, "region:")
}

# One region after the other: a failure ends the rollout.
trigger contains next.id if {
	input.run.type == "TRACKED"
	input.run.state == "FINISHED"
	some next in input.stacks
	number(next) == number(input.stack) + 1
}
