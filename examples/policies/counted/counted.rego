package counted

import rego.v1

# A label says how often a stack is tried; without it, twice.
default allowed := 2

allowed := to_number(trim_prefix(label, "tries:")) if {
	some label in input.stack.labels
	startswith(label, "tries:")
}

# Each try leaves a flag, which the next one finds.
done := count([mark | some mark in input.run.flags; startswith(mark, "tried:")]) + 1

again if {
	input.run.state == "FAILED"
	done < allowed
}

trigger contains input.stack.id if again

flag contains sprintf("tried:%d", [done]) if again
