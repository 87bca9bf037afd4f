package list

import rego.v1

# Once the network is deployed, these two follow.
followers := {"database", "app"}

trigger contains stack if {
	input.run.type == "TRACKED"
	input.run.state == "FINISHED"
	some stack in followers
}
