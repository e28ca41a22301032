"""The Flask extensions, created once and bound to an application by its factory."""

from __future__ import annotations

from flask_limiter import Limiter
from flask_login import LoginManager
from flask_migrate import Migrate
from flask_sqlalchemy import SQLAlchemy
from flask_wtf.csrf import CSRFProtect

from app.limits import limit_key
from hits.db import Base

db = SQLAlchemy(metadata=Base.metadata)
migrate = Migrate(directory="app/migrations", render_as_batch=True)
login_manager = LoginManager()
csrf = CSRFProtect()
#: In memory: each process counts for itself, which is enough to stop a runaway page.
limiter = Limiter(key_func=limit_key, default_limits=[], storage_uri="memory://")
