# All stacks that use the old version follow, unless they are frozen.
package releases

trigger contains stack.id if {
	some stack in input.stacks
	not frozen(stack)
}

frozen(stack) if "frozen" in stack.labels
