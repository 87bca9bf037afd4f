package join

import rego.v1

finished contains turn.stack_id if {
	some turn in input.workflow
	turn.state == "FINISHED"
}

# A label lists the stacks that its stack waits for: `after:database,queue`.
trigger contains bearer.id if {
	input.run.type == "TRACKED"
	input.run.state == "FINISHED"
	some bearer in input.stacks
	some label in bearer.labels
	startswith(label, "after:")
	names := {name | some name in split(trim_prefix(label, "after:"), ",")}
	input.stack.id in names
	count(names - finished) == 0
}
