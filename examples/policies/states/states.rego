package states

import rego.v1

# A label names a stack, and the state in which it must end for this one to follow: `on:app=FAILED`.
wanted := sprintf("on:%s=%s", [input.stack.id, input.run.state])

trigger contains bearer.id if {
	input.run.type == "TRACKED"
	some bearer in input.stacks
	some label in bearer.labels
	label == wanted
}
