package retry

import rego.v1

# Retry, unless somebody asked for this turn: a user, or a policy such as this one.
trigger contains input.stack.id if {
	input.run.type == "TRACKED"
	input.run.state == "FAILED"
	input.run.triggered_by == null
}
