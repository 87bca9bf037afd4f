package split

import rego.v1

trigger contains branch if {
	input.run.type == "TRACKED"
	input.run.state == "FINISHED"
	some branch in ["database", "queue"]
}
