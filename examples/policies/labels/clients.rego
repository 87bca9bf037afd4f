package clients

import rego.v1

# A stack names what it needs in its labels, and follows when that has been deployed.
trigger contains client.id if {
	input.run.type == "TRACKED"
	input.run.state == "FINISHED"
	some client in input.stacks
	concat(":", ["needs", input.stack.id]) in client.labels
}
