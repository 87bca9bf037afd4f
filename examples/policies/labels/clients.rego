package clients

import rego.v1

# The labels of a stack name the stacks that it needs; it follows when one of them has been deployed.
trigger contains client.id if {
	input.run.type == "TRACKED"
	input.run.state == "FINISHED"
	some client in input.stacks
	concat(":", ["needs", input.stack.id]) in client.labels
}
