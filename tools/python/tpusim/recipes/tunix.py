"""tunix: `python3 -m tunix.cli.peft_main CONFIG.yaml name=value`, its fine-tuning.

It loads the weights of a model; a script that makes them itself and calls `PeftTrainer` needs no
recipe.
"""

from tpusim.recipes import Recipe

RECIPE = Recipe(
    arguments=(
        "training_config.eval_every_n_steps=1000000",
        "training_config.checkpoint_root_directory=",
    ),
    vary={"batch_size": (8, 16, 32)},
)
