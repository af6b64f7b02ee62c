"""MaxText: `python3 -m maxtext.trainers.pre_train.train [base.yml] model_name=... name=value`."""

from tpusim.recipes import Recipe

_TRAINERS = "maxtext.trainers.pre_train"

RECIPE = Recipe(
    arguments=(
        "run_name=tpusim",
        "base_output_directory=/tmp/tpusim-maxtext",
        "dataset_type=synthetic",
        "enable_checkpointing=false",
        "enable_goodput_recording=false",
        "enable_tensorboard=false",
        "gcs_metrics=false",
        "save_config_to_gcs=false",
        "log_config=false",
        "profiler=''",
        "hardware=tpu",
    ),
    modules={
        f"{_TRAINERS}.train_compile": f"{_TRAINERS}.train",
        "MaxText.train_compile": f"{_TRAINERS}.train",
        "MaxText.train": f"{_TRAINERS}.train",
    },
    slice="compile_topology",
    slices="compile_topology_num_slices",
    vary={
        "per_device_batch_size": (1, 2, 4, 8),
        "remat_policy": ("full", "minimal", "save_dot_except_mlp"),
    },
)
