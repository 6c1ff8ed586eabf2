"""Changes a mounted file at random, as a model (tree_model.py) says that it can be changed.

    player = Player(model, dice, folder)    folder: where it is mounted
    player.play(20)                         so many operations; raises Wrong

Each operation is a system call or two; its errno and what it returns must be what the model says."""
from tree_contents import ContentSteps
from tree_names import NameSteps
from tree_values import AttributeSteps


class Player(NameSteps, AttributeSteps, ContentSteps):
    WEIGHTS = {"mkdir": 4, "rmdir": 3, "create": 8, "unlink": 5, "rename": 8, "exchange": 2, "link": 3, "symlink": 3,
               "save": 4, "set_attribute": 10, "remove_attribute": 4, "set_type": 3, "set_raw": 2, "append": 6,
               "overwrite": 4, "beyond": 2, "truncate": 3, "cut": 2, "replace": 2, "set_dimensions": 2, "write_lines": 3, "punch": 2, "set_shape": 2, "declare": 4, "hold": 3,
               "use_held": 5, "change_held": 4, "drop_held": 2, "many": 1, "clear": 1, "sync": 2, "look": 4, "comment": 1}
