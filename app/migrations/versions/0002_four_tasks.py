"""Answers that are spans, ensembles' members, what a model saw, and what is known of each model version.

Revision ID: 0002
Revises: 0001
Create Date: 2026-11-30 15:20:00+00:00
"""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

ATTEMPT = ("characters_read", "predicted_answer", "answer_f1", "confidence", "policy", "members", "goal_attribution")
MODEL_VERSION = ("label_map", "weights_sha256", "licence", "parameters", "seed")


def upgrade() -> None:
    with op.batch_alter_table("attempt", schema=None) as batch_op:
        batch_op.add_column(sa.Column("characters_read", sa.JSON(none_as_null=True), nullable=True))
        batch_op.add_column(sa.Column("predicted_answer", sa.JSON(none_as_null=True), nullable=True))
        batch_op.add_column(sa.Column("answer_f1", sa.Double(), nullable=True))
        batch_op.add_column(sa.Column("confidence", sa.Double(), nullable=True))
        batch_op.add_column(sa.Column("policy", sa.String(length=200), nullable=True))
        batch_op.add_column(sa.Column("members", sa.JSON(none_as_null=True), nullable=True))
        batch_op.add_column(sa.Column("goal_attribution", sa.JSON(none_as_null=True), nullable=True))
    with op.batch_alter_table("vote", schema=None) as batch_op:
        batch_op.add_column(sa.Column("details", sa.JSON(none_as_null=True), nullable=True))
    with op.batch_alter_table("model_version", schema=None) as batch_op:
        batch_op.add_column(sa.Column("label_map", sa.JSON(none_as_null=True), nullable=True))
        batch_op.add_column(sa.Column("weights_sha256", sa.String(length=64), nullable=True))
        batch_op.add_column(sa.Column("licence", sa.String(length=200), nullable=True))
        batch_op.add_column(sa.Column("parameters", sa.BigInteger(), nullable=True))
        batch_op.add_column(sa.Column("seed", sa.Integer(), nullable=True))


def downgrade() -> None:
    for table, columns in (("model_version", MODEL_VERSION), ("vote", ("details",)), ("attempt", ATTEMPT)):
        with op.batch_alter_table(table, schema=None) as batch_op:
            for column in reversed(columns):
                batch_op.drop_column(column)
