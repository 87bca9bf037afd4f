package list

import rego.v1

# When the network is there, these two follow.
followers := {"database", "app"}

trigger contains stack if {
	input.run.type == "TRACKED"
	input.run.state == "FINISHED"
	some stack in followers
}
