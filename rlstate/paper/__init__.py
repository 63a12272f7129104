"""The paper's tables, figures and claims, made of rows of finished runs and set beside what it printed."""
